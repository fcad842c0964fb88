//! What the listings promise.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process;

use super::changes::{Changes, head};
use super::page::item;
use super::pages::list;
use super::text::{one_line, plain};

const STRUCT: &str = r##" class="content"><h1>Struct Pool</h1>
<pre class="rust item-decl"><code><div class="code-attribute">#[non_exhaustive]</div>pub struct Pool&lt;M&gt;<div class="where">where
    M: <a href="trait.Manager.html">Manager</a>,</div>{<details class="toggle"><summary class="hideme"><span>Show 13 fields</span></summary>
    pub size: <a href="usize.html">usize</a>,
    <span class="comment">/* private fields */</span>
</details>}</code></pre>
<div class="docblock"><h2 id="implementations"><a class="doc-anchor" href="#x">§</a>A heading</h2>
<section id="x" class="method"><h4 class="code-header">not API</h4></section></div>
<h2 id="implementations" class="section-header">Implementations</h2>
<section id="impl-Pool" class="impl"><h3 class="code-header">impl&lt;M&gt; Pool&lt;M&gt;</h3></section>
<section id="method.acquire" class="method"><h4 class="code-header">pub fn <a>acquire</a>(
    &amp;self,
    limit: Duration,
) -&gt; Acquire&lt;'_, M&gt; <a href="#" class="tooltip">ⓘ</a></h4></section>
<h2 id="deref-methods-Core" class="section-header">Methods from Deref</h2>
<section id="method.core" class="method"><h4 class="code-header">pub fn core(&amp;self)</h4></section>
<h2 id="trait-implementations" class="section-header">Trait Implementations</h2>
<section id="impl-Deref" class="impl"><h3 class="code-header">impl&lt;M&gt; Deref for Pool&lt;M&gt;</h3></section>
<section id="associatedtype.Target" class="associatedtype trait-impl"><h4 class="code-header">type Target = Core</h4></section>
<section id="method.deref" class="method trait-impl"><h4 class="code-header">fn deref(&amp;self)</h4></section>
<section id="impl-S" class="impl"><h3 class="code-header">impl StructuralPartialEq for Pool</h3></section>
<h2 id="synthetic-implementations" class="section-header">Auto Trait Implementations</h2>
<section id="impl-Send" class="impl"><h3 class="code-header">impl&lt;M&gt; Send for Pool&lt;M&gt;</h3></section>
<h2 id="blanket-implementations" class="section-header">Blanket Implementations</h2>
<section id="impl-Any" class="impl"><h3 class="code-header">impl&lt;T&gt; Any for T</h3></section>"##;

#[test]
fn a_page_gives_fields_methods_and_traits_without_auto_and_blanket_ones() {
    assert_eq!(
        item(STRUCT),
        [
            "    #[non_exhaustive] pub struct Pool<M> where M: Manager,",
            "    pub size: usize,",
            "    /* private fields */",
            "    impl<M> Pool<M>",
            "        pub fn acquire(&self, limit: Duration) -> Acquire<'_, M>",
            "    impl<M> Deref for Pool<M>",
            "        type Target = Core",
        ]
    );
}

#[test]
fn items_of_a_trait_and_variants_have_a_line_each() {
    let page = "<pre class=\"rust item-decl\"><code>pub trait Manager: Send {\n    \
                type Error;\n\n    // Required method\n    fn open(\n        &amp;self,\n    ) -&gt; Self::Error;\n\n    \
                // Provided method\n    fn close(&amp;self) { ... }\n}</code></pre>";
    assert_eq!(
        item(page),
        [
            "    pub trait Manager: Send",
            "    type Error;",
            "    fn open(&self) -> Self::Error;",
            "    fn close(&self) { ... }",
        ]
    );

    let page = "<pre class=\"rust item-decl\"><code>pub enum End {\n    Fine,\n    Bad {\n        \
                why: String,\n    },\n}</code></pre>";
    assert_eq!(
        item(page),
        ["    pub enum End", "    Fine,", "    Bad { why: String, },"]
    );
}

#[test]
fn a_listing_follows_the_pages_from_the_root_and_reads_no_others() {
    let doc = Pages::new("walk");
    doc.write(
        "a/index.html",
        r#"<dl><dt id="reexport.Row"><code>pub use sqlx::<a>Row</a>;</code></dt></dl>
           <dt><a class="mod" href="b/index.html" title="mod a::b">b</a></dt><dd>A module.</dd>
           <dt><a class="fn" href="fn.c.html" title="fn a::c">c<wbr></a></dt><dd>A function.</dd>"#,
    );
    doc.write("a/b/index.html", "");
    let function = "<pre class=\"rust item-decl\"><code>pub fn c()</code></pre>";
    doc.write("a/fn.c.html", function);
    doc.write("a/fn.old.html", function);

    let lines = list(&doc.folder, "a").expect("pages");

    let expected = [
        "mod a",
        "    pub use sqlx::Row;",
        "mod a::b",
        "fn a::c",
        "    pub fn c()",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn pages_in_another_form_are_a_failure_that_says_so() {
    let doc = Pages::new("form");
    doc.write("a/index.html", "<table><tr><td>fn c</td></tr></table>");
    let failure = list(&doc.folder, "a").expect_err("no items");
    assert!(failure.contains("it lists no items"), "{failure}");

    let link = r#"<dt><a class="fn" href="fn.c.html">c</a></dt>"#;
    doc.write("a/index.html", link);
    doc.write("a/fn.c.html", "<pre>pub fn c()</pre>");
    let failure = list(&doc.folder, "a").expect_err("no declaration");
    assert!(failure.contains("it has no declaration"), "{failure}");
    assert!(failure.contains("mend xtask/src/api/"), "{failure}");
}

#[test]
fn the_form_of_a_line_does_not_depend_on_how_rustdoc_breaks_it() {
    let broken = plain("pub fn a(\n    b: <a title=\"x\">Vec</a>&lt;u8&gt;,\n) -&gt; u8");

    assert_eq!(one_line(&broken), "pub fn a(b: Vec<u8>) -> u8");
}

const BEFORE: &str = "\
# The public API of cenote, by rustdoc 1.95.0: `cargo xtask api --write`
mod cenote
struct cenote::Pool
    pub struct Pool
    /* private fields */
    impl Pool
        pub fn close(&self)
        pub fn len(&self) -> usize
enum cenote::End
    pub enum End
    Fine,
trait cenote::Manager
    pub trait Manager
    fn open(&self);
";

#[test]
fn equal_listings_have_nothing_to_report() {
    let changes = Changes::between(BEFORE, BEFORE);

    assert_eq!((changes.breaking(), changes.additions()), (0, 0));
    assert_eq!(changes.report("cenote", "1.96.0"), "");
}

#[test]
fn a_changed_line_is_breaking_and_is_shown_beside_the_new_one() {
    let after = BEFORE.replace("-> usize", "-> u32");
    let changes = Changes::between(BEFORE, &after);

    assert_eq!((changes.breaking(), changes.additions()), (1, 1));
    let expected = "cenote: 1 breaking, 1 added\n  struct cenote::Pool > impl Pool\n    \
                    - breaking pub fn len(&self) -> usize\n    + addition pub fn len(&self) -> u32\n";
    assert_eq!(changes.report("cenote", "1.95.0"), expected);
}

#[test]
fn an_added_method_or_item_is_an_addition() {
    let after = BEFORE.replace(
        "    impl Pool\n",
        "    impl Pool\n        pub fn new() -> Self\n",
    );
    let changes = Changes::between(BEFORE, &after);
    assert_eq!((changes.breaking(), changes.additions()), (0, 1));

    let after = format!("{BEFORE}fn cenote::pools\n    pub fn pools() -> Vec<Pool>\n");
    let changes = Changes::between(BEFORE, &after);
    assert_eq!((changes.breaking(), changes.additions()), (0, 1));
    let report = changes.report("cenote", "1.95.0");
    assert!(
        report.contains("fn cenote::pools\n    + addition the whole item"),
        "{report}"
    );
}

#[test]
fn an_item_that_is_gone_is_one_line_of_the_report() {
    let after = BEFORE.replace("enum cenote::End\n    pub enum End\n    Fine,\n", "");
    let changes = Changes::between(BEFORE, &after);

    assert_eq!((changes.breaking(), changes.additions()), (1, 0));
    let report = changes.report("cenote", "1.95.0");
    assert!(
        report.contains("enum cenote::End\n    - breaking the whole item"),
        "{report}"
    );
}

#[test]
fn a_new_duty_or_variant_breaks_code_that_was_complete() {
    let duty = BEFORE.replace(
        "    fn open(&self);\n",
        "    fn open(&self);\n    fn check(&self);\n",
    );
    let changes = Changes::between(BEFORE, &duty);
    assert_eq!((changes.breaking(), changes.additions()), (1, 0));

    let choice = duty.replace("check(&self);", "check(&self) { ... }");
    let changes = Changes::between(BEFORE, &choice);
    assert_eq!((changes.breaking(), changes.additions()), (0, 1));

    let variant = BEFORE.replace("    Fine,\n", "    Fine,\n    Bad,\n");
    let changes = Changes::between(BEFORE, &variant);
    assert_eq!((changes.breaking(), changes.additions()), (1, 0));

    let open = BEFORE.replace("pub enum End", "#[non_exhaustive] pub enum End");
    let variant = open.replace("    Fine,\n", "    Fine,\n    Bad,\n");
    let changes = Changes::between(&open, &variant);
    assert_eq!((changes.breaking(), changes.additions()), (0, 1));
}

#[test]
fn another_rustdoc_is_named_where_lines_differ() {
    let after = BEFORE.replace("-> usize", "-> core::primitive::usize");
    let report = Changes::between(BEFORE, &after).report("cenote", "1.96.0");

    assert!(
        report.contains("rustdoc 1.95.0 wrote the listing, and this is 1.96.0"),
        "{report}"
    );
    assert_eq!(
        BEFORE.lines().next(),
        Some(head("cenote", "1.95.0").as_str())
    );
}

/// A folder of pages that vanishes with its test.
struct Pages {
    folder: PathBuf,
}

impl Pages {
    fn new(name: &str) -> Self {
        let folder = env::temp_dir().join(format!("cenote-xtask-{name}-{}", process::id()));
        Self { folder }
    }

    /// Writes a page with this main part.
    fn write(&self, path: &str, main: &str) {
        let path = self.folder.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder that can be made");
        let page = format!("<main><section id=\"main-content\">{main}</section></main>");
        fs::write(path, page).expect("a file that can be written");
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // Left behind in the temporary folder at worst.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
