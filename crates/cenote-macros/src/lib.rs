//! The attribute `transactional`, which cenote-sqlx exports with its feature `macros`.

mod args;
mod expand;
mod function;

use proc_macro::TokenStream;

/// Runs an `async fn` in a transaction. The documentation is in cenote-sqlx, which exports it.
#[proc_macro_attribute]
pub fn transactional(args: TokenStream, item: TokenStream) -> TokenStream {
    match expand::expand(args.into(), item.clone().into()) {
        Ok(function) => function.into(),
        Err(error) => {
            // The function stays, so that the compiler does not also report its callers.
            let mut tokens = TokenStream::from(error.into_compile_error());
            tokens.extend(item);
            tokens
        }
    }
}
