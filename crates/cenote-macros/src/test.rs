//! The attribute `test`: a function that gets a database.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Expr, FnArg, Ident, ItemFn, LitStr, Result, Token};

const OPTIONS: &str = "`url = ..`, `migrations = \"folder\"`, `fixtures(\"name\")` and `isolated`";

#[derive(Default)]
struct Args {
    url: Option<Expr>,
    migrations: Option<LitStr>,
    fixtures: Vec<LitStr>,
    isolated: bool,
}

impl Parse for Args {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut args = Self::default();
        while !input.is_empty() {
            let name: Ident = input.parse()?;
            match name.to_string().as_str() {
                "url" => {
                    input.parse::<Token![=]>()?;
                    args.url = Some(input.parse()?);
                }
                "migrations" => {
                    input.parse::<Token![=]>()?;
                    args.migrations = Some(input.parse()?);
                }
                "fixtures" => {
                    let names;
                    syn::parenthesized!(names in input);
                    let names = Punctuated::<LitStr, Token![,]>::parse_terminated(&names)?;
                    args.fixtures.extend(names);
                }
                "isolated" => args.isolated = true,
                _ => {
                    let text = format!("`{name}` is not an option: the options are {OPTIONS}");
                    return Err(Error::new(name.span(), text));
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(args)
    }
}

pub(crate) fn expand(args: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let args: Args = syn::parse2(args)?;
    let mut function: ItemFn = syn::parse2(item)?;
    check(&function)?;
    let here = Span::mixed_site();
    let attributes = std::mem::take(&mut function.attrs);
    let visibility = std::mem::replace(&mut function.vis, syn::Visibility::Inherited);
    let (name, output) = (&function.sig.ident, &function.sig.output);
    let plan = plan(&args);
    Ok(quote_spanned! {here=>
        #(#attributes)*
        #[::core::prelude::v1::test]
        #visibility fn #name() #output {
            #function
            ::cenote_sqlx::__test::run(#plan, #name)
        }
    })
}

fn check(function: &ItemFn) -> Result<()> {
    let signature = &function.sig;
    if signature.asyncness.is_none() {
        let text = "a test with a database is `async`: add `async`";
        return Err(Error::new_spanned(signature.fn_token, text));
    }
    let mut inputs = signature.inputs.iter();
    match (inputs.next(), inputs.next()) {
        (Some(FnArg::Typed(_)), None) => Ok(()),
        _ => {
            let text = "the test takes the database, and nothing else: `db: Db<Postgres>`";
            Err(Error::new_spanned(&signature.ident, text))
        }
    }
}

fn plan(args: &Args) -> TokenStream {
    let here = Span::mixed_site();
    let none = quote_spanned!(here=> ::core::option::Option::None);
    let url = args.url.as_ref().map_or_else(
        || none.clone(),
        |url| {
            let url = url.to_token_stream();
            quote_spanned!(here=> ::core::option::Option::Some(::std::string::String::from(#url)))
        },
    );
    let migrator = args.migrations.as_ref().map_or(
        none,
        |folder| quote_spanned!(here=> ::core::option::Option::Some(::sqlx::migrate!(#folder))),
    );
    let fixtures = args.fixtures.iter().map(|fixture| {
        let name = fixture.value();
        let path = match name.ends_with(".sql") {
            true => name,
            false => format!("fixtures/{name}.sql"),
        };
        let path = LitStr::new(&path, fixture.span());
        quote_spanned!(fixture.span()=> ::core::include_str!(#path))
    });
    let isolated = args.isolated;
    quote_spanned! {here=>
        ::cenote_sqlx::__test::Plan {
            url: #url,
            migrator: #migrator,
            fixtures: &[#(#fixtures),*],
            isolated: #isolated,
        }
    }
}
