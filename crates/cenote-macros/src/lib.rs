//! The attributes `transactional` and `test`, which cenote-sqlx exports with its feature `macros`.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod args;
mod expand;
mod function;
mod test;

use proc_macro::TokenStream;

/// Runs an `async fn` in a transaction. The documentation is in cenote-sqlx, which exports it.
#[proc_macro_attribute]
pub fn transactional(args: TokenStream, item: TokenStream) -> TokenStream {
    or_error(expand::expand(args.into(), item.clone().into()), item)
}

/// Gives an `async fn` a database for a test. The documentation is in cenote-sqlx, which exports
/// it.
#[proc_macro_attribute]
pub fn test(args: TokenStream, item: TokenStream) -> TokenStream {
    or_error(test::expand(args.into(), item.clone().into()), item)
}

fn or_error(expanded: syn::Result<proc_macro2::TokenStream>, item: TokenStream) -> TokenStream {
    match expanded {
        Ok(function) => function.into(),
        Err(error) => {
            // The function stays, so that the compiler does not also report its callers.
            let mut tokens = TokenStream::from(error.into_compile_error());
            tokens.extend(item);
            tokens
        }
    }
}
