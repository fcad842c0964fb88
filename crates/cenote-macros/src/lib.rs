//! The attribute `transactional` of cenote-sqlx, which re-exports it with its feature `macros`.

mod args;
mod expand;
mod function;

use proc_macro::TokenStream;

/// Expands to calls of cenote-sqlx, and is documented there.
#[proc_macro_attribute]
pub fn transactional(args: TokenStream, item: TokenStream) -> TokenStream {
    match expand::expand(args.into(), item.clone().into()) {
        Ok(function) => function.into(),
        Err(error) => {
            // The function stays, so that nobody is told that it is missing.
            let mut tokens = TokenStream::from(error.into_compile_error());
            tokens.extend(item);
            tokens
        }
    }
}
