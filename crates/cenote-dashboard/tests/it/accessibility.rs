//! The page for people who cannot see it well, or at all.
//!
//! The checks read Chromium's own accessibility tree and computed styles, so they need no download
//! and no exception from the content security policy.

use std::time::Duration;

use cenote::{Lease, Pool};
use cenote_dashboard::{Dashboard, Token};
use serde_json::{Value, json};

use super::browser::Tab;
use super::rig::{Server, TOKEN, pool};

/// Roles of elements that a visitor operates, or that stand for a picture. Each needs a name.
const NAMED: [&str; 10] = [
    "button",
    "link",
    "textbox",
    "searchbox",
    "spinbutton",
    "slider",
    "image",
    "table",
    "region",
    "dialog",
];

/// Text whose contrast is too low, by the colours that are really drawn.
const FAINT: &str = r#"(() => {
    const parse = (text) => {
        const [r, g, b, a = 1] = text.match(/[\d.]+/g).map(Number);
        return { r, g, b, a };
    };
    const over = (top, bottom) => ({
        r: top.r * top.a + bottom.r * (1 - top.a),
        g: top.g * top.a + bottom.g * (1 - top.a),
        b: top.b * top.a + bottom.b * (1 - top.a),
        a: 1,
    });
    const light = ({ r, g, b }) => {
        const part = (value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
        return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
    };
    const ground = (node) => {
        const layers = [];
        for (let one = node; one; one = one.parentElement) layers.push(parse(getComputedStyle(one).backgroundColor));
        return layers.reverse().reduce((below, layer) => over(layer, below), { r: 255, g: 255, b: 255, a: 1 });
    };
    const faint = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    let seen = 0;
    while (walker.nextNode()) {
        const text = walker.currentNode.textContent.trim();
        const node = walker.currentNode.parentElement;
        if (!text || !node.checkVisibility({ visibilityProperty: true }) || node.closest('.unseen, .skip, noscript')) continue;
        const style = getComputedStyle(node);
        const colour = node.namespaceURI.endsWith('svg') ? style.fill : style.color;
        const below = ground(node);
        const [a, b] = [light(over(parse(colour), below)), light(below)];
        const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        const size = parseFloat(style.fontSize);
        const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
        seen += 1;
        if (contrast < (large ? 3 : 4.5)) faint.push(`${contrast.toFixed(2)}: ${text} (${colour})`);
    }
    return { seen, faint };
})()"#;

async fn tree(tab: &Tab) -> Vec<Value> {
    let tree = tab.call("Accessibility.getFullAXTree", json!({})).await;
    let nodes = tree["nodes"].as_array().unwrap().iter();
    nodes
        .filter(|node| node["ignored"] == false)
        .cloned()
        .collect()
}

fn role(node: &Value) -> &str {
    node["role"]["value"].as_str().unwrap_or_default()
}

pub(crate) async fn check(tab: &Tab, what: &str) {
    let nodes = tree(tab).await;
    for node in nodes.iter().filter(|node| NAMED.contains(&role(node))) {
        let name = node["name"]["value"].as_str().unwrap_or_default();
        assert!(!name.trim().is_empty(), "{what}: no name: {node}");
    }
    for landmark in ["banner", "main", "contentinfo"] {
        let count = nodes.iter().filter(|node| role(node) == landmark).count();
        assert_eq!(count, 1, "{what}: {landmark}");
    }
    let headings = nodes.iter().filter(|node| role(node) == "heading");
    let levels: Vec<u64> = headings.map(level).collect();
    assert_eq!(levels.first(), Some(&1), "{what}: {levels:?}");
    assert_eq!(
        levels.iter().filter(|level| **level == 1).count(),
        1,
        "{what}"
    );
    assert!(
        levels.windows(2).all(|two| two[1] <= two[0] + 1),
        "{what}: {levels:?}"
    );
    let same = tab.eval(
        "[...document.querySelectorAll('[id]')].map((node) => node.id)
            .filter((id, index, all) => all.indexOf(id) !== index)",
    );
    assert_eq!(same.await, json!([]), "{what}: an id is used twice");
    let broken = tab.eval(
        "[...document.querySelectorAll('[aria-labelledby]')]
            .filter((node) => !document.getElementById(node.getAttribute('aria-labelledby')))
            .length",
    );
    assert_eq!(broken.await, 0, "{what}: a label that is not there");
    let bare = tab.eval(
        "[...document.querySelectorAll('table')].filter((table) => !table.caption
            || [...table.querySelectorAll('th')].some((head) => !head.scope)).length",
    );
    assert_eq!(bare.await, 0, "{what}: a table without caption or scopes");
    let contrast = tab.eval(FAINT).await;
    assert!(
        contrast["seen"].as_u64().unwrap() > 10,
        "{what}: {contrast}"
    );
    assert_eq!(contrast["faint"], json!([]), "{what}: text is too faint");
}

fn level(node: &Value) -> u64 {
    let mut properties = node["properties"].as_array().unwrap().iter();
    let level = properties.find(|one| one["name"] == "level").unwrap();
    level["value"]["value"].as_u64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_part_has_names_landmarks_headings_and_contrast_in_both_themes() {
    let leaky = Pool::from_fn(async || Ok::<_, &str>(()))
        .name("access")
        .max_size(2);
    let leaky = leaky.leak_after(Duration::from_millis(1)).build().unwrap();
    let down = Pool::from_fn(async || Err::<(), _>("refused")).name("access down");
    let down = down.build().unwrap();
    assert!(down.acquire().await.is_err());
    let (idle, closed) = (pool("access idle", 1), pool("access closed", 1));
    drop(idle.acquire().await.unwrap());
    closed.close();
    closed.acquire().await.unwrap_err();
    let held = [
        leaky.acquire().await.unwrap(),
        leaky.acquire().await.unwrap(),
    ];
    Lease::label(&held[0], "report");
    let waiting = tokio::spawn({
        let leaky = leaky.clone();
        async move { drop(leaky.acquire_within(Duration::from_secs(60)).await) }
    });
    let server = Server::start(Dashboard::new().actions(Token::new(TOKEN).unwrap()));
    let tab = Tab::open(&server.url("/live")).await;

    for theme in ["light", "dark"] {
        tab.prefer("prefers-color-scheme", theme).await;
        for width in [1280, 360] {
            tab.size(width, 900).await;
            tab.eval("location.hash = '#/'").await;
            tab.until("document.querySelectorAll('.pools tbody tr').length >= 4")
                .await;
            check(&tab, &format!("list, {theme}, {width}")).await;
            tab.eval(&format!("location.hash = '#/pool/{}'", leaky.number()))
                .await;
            tab.until("document.querySelector('tr.leaked')").await;
            tab.until("document.querySelector('.plot text')").await;
            tab.eval("document.querySelector('details').open = true")
                .await;
            check(&tab, &format!("pool, {theme}, {width}")).await;
        }
    }
    tab.assert_content();
    waiting.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn colour_is_never_the_only_sign() {
    let (idle, down) = (pool("signs", 3), pool("signs closed", 1));
    drop(idle.acquire().await.unwrap());
    down.close();
    let _held = idle.acquire().await.unwrap();
    let server = Server::start(Dashboard::new());
    let tab = Tab::open(&server.url("/live")).await;
    tab.until("document.querySelectorAll('.pools tbody tr').length >= 2")
        .await;

    let verdicts =
        "Object.fromEntries([...document.querySelectorAll('.pools .col-verdict .verdict')]
        .map((node) => [node.innerText, node.querySelector('path').getAttribute('d')]))";
    let verdicts = tab.eval(verdicts).await;
    assert_ne!(
        verdicts["healthy"], verdicts["closed"],
        "each verdict has a word and a shape"
    );
    assert!(verdicts["closed"].is_string(), "{verdicts}");
    tab.eval(&format!("location.hash = '#/pool/{}'", idle.number()))
        .await;
    tab.until("document.querySelectorAll('.slots .cell').length === 3")
        .await;

    let label = tab
        .eval("document.querySelector('.slots').getAttribute('aria-label')")
        .await;
    assert_eq!(label, "3 slots: 1 leased, 2 vacant");
    let patterns = "[...document.querySelectorAll('.legend .cell')].map((cell) => {
        const style = getComputedStyle(cell);
        return `${style.backgroundImage} ${style.borderStyle} ${style.backgroundColor === 'rgba(0, 0, 0, 0)'}
            ${style.backgroundColor === style.borderColor}`;
    })";
    let patterns = tab.eval(patterns).await;
    let patterns = patterns.as_array().unwrap();
    for (nth, one) in patterns.iter().enumerate() {
        assert!(
            !patterns[..nth].contains(one),
            "two states differ by colour only: {one}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_moves_for_visitors_who_prefer_that() {
    let pool = pool("still", 3);
    let server = Server::start(Dashboard::new());
    let tab = Tab::open(&server.url(&format!("/live#/pool/{}", pool.number()))).await;
    tab.prefer("prefers-reduced-motion", "reduce").await;
    tab.until("document.querySelector('.slots .cell')").await;

    let moves = "[...document.querySelectorAll('*')].filter((node) => {
        const style = getComputedStyle(node);
        return style.transitionProperty !== 'none' && style.transitionDuration !== '0s' || style.animationName !== 'none';
    }).length";
    assert_eq!(tab.eval(moves).await, 0);
}
