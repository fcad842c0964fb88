//! The expansion: the same function, with a body that runs in a transaction.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, FnArg, Ident, ItemFn, Result, Type};

use crate::args::{Args, Retry};
use crate::function::{self, Database, Response};

pub(crate) fn expand(args: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let args: Args = syn::parse2(args)?;
    let mut function = function::read(item)?;
    let db = function::database(args.db.clone(), &function.sig)?;
    let again = args.retry.as_ref();
    let again = again.map(|_| changeable(&mut function)).transpose()?;

    let run = run(&args, &function, again.is_some())?;
    let body = match (&args.retry, again) {
        (Some(retry), Some(changeable)) => repeated(&run, retry, &changeable),
        _ => run,
    };
    // Variables of the expansion have the hygiene of the macro, so that they hide none of the
    // function's own.
    let here = Span::mixed_site();
    let db = handle(&db);
    let body = quote_spanned! {here=> {
        let db = #db;
        #body
    }};
    function.block = syn::parse2(body)?;
    Ok(function.into_token_stream())
}

/// Returns the code that clones the handle. A clone, because the body may move the argument.
fn handle(db: &Database) -> TokenStream {
    let site = |span: Span| span.resolved_at(Span::mixed_site());
    match db {
        Database::Known(db) => {
            quote_spanned!(site(db.span())=> ::cenote_sqlx::__transactional::handle(&#db))
        }
        Database::Guessed(name) => {
            quote_spanned!(site(name.span())=> ::cenote_sqlx::__transactional::guess(&#name))
        }
    }
}

/// Returns the `mut` arguments, of which each try gets a fresh copy. The copies are `mut`, the
/// arguments themselves no longer.
fn changeable(function: &mut ItemFn) -> Result<Vec<Ident>> {
    if let Some(FnArg::Receiver(receiver)) = function.sig.inputs.first()
        && receiver.reference.is_none()
        && receiver.mutability.is_some()
    {
        let text = "`retry` may run the body again after it has changed `self`: take `self`, and change a copy";
        return Err(Error::new_spanned(receiver, text));
    }
    Ok(function::names(&mut function.sig).mutable)
}

/// Returns the code that runs the body once, in a transaction.
fn run(args: &Args, function: &ItemFn, again: bool) -> Result<TokenStream> {
    let returned = function::returned(&function.sig)?;
    let work = work(function, returned, again);
    let join = args.join;
    let here = Span::mixed_site();
    let mut options = quote_spanned!(here=> ::cenote_sqlx::TransactionOptions::new());
    if args.read_only {
        options.extend(quote_spanned!(here=> .read_only()));
    }
    if let Some(level) = &args.isolation {
        options.extend(quote_spanned!(here=> .isolation(::cenote_sqlx::Isolation::#level)));
    }
    // A return type that does not fit is an error at the type, not at the attribute.
    let there = returned.span().resolved_at(here);
    let run = quote_spanned! {there=>
        ::cenote_sqlx::__transactional::run(&db, how, work, |end| {
            use ::cenote_sqlx::__transactional::AnyEnd as _;
            ::cenote_sqlx::__transactional::End(end).refuses()
        })
        .await
    };
    Ok(quote_spanned! {here=> {
        let work = #work;
        let how = ::cenote_sqlx::__transactional::How { options: #options, join: #join };
        #run
    }})
}

/// Returns the future of the body. A body that may run again borrows the arguments; a body that
/// runs once owns them.
fn work(function: &ItemFn, returned: &Type, again: bool) -> TokenStream {
    let here = Span::mixed_site();
    let owns = (!again).then(|| quote_spanned!(here=> move));
    let (block, nameable) = (&function.block, function::nameable(returned));
    // An async block cannot declare its type. Its first `return` fixes the type, so this one comes
    // first, and is never reached.
    let work = quote_spanned! {here=> async #owns {
        if let ::core::option::Option::Some(end) = ::core::option::Option::None::<#nameable> {
            return end;
        }
        #block
    }};
    let respond = match function::response(returned) {
        Response::No => return work,
        Response::Whole(by) => quote_spanned!(here=> #by::into_response(work.await)),
        Response::Success(by) => quote_spanned!(here=> work.await.map(#by::into_response)),
    };
    quote_spanned! {here=> {
        let work = #work;
        async move { #respond }
    }}
}

fn repeated(run: &TokenStream, retry: &Retry, changeable: &[Ident]) -> TokenStream {
    let here = Span::mixed_site();
    let retry = match retry {
        Retry::Default => {
            quote_spanned!(here=> <::cenote_sqlx::Retry as ::core::default::Default>::default())
        }
        Retry::As(retry) => retry.to_token_stream(),
    };
    let copies = changeable.iter().map(|name| {
        let there = name.span().resolved_at(here);
        quote_spanned!(there=> let mut #name = ::core::clone::Clone::clone(&#name);)
    });
    quote_spanned! {here=>
        let mut tries = ::cenote_sqlx::__transactional::Tries::new(&db, #retry);
        loop {
            #(#copies)*
            let end = #run;
            match tries.rest(&db, &end) {
                ::core::option::Option::Some(rest) => {
                    ::core::mem::drop(end);
                    ::cenote_sqlx::__transactional::rest(rest).await;
                }
                ::core::option::Option::None => break end,
            }
        }
    }
}
