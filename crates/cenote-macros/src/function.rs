//! The function under the attribute: whether it can be transactional, its database, and the type
//! that it returns.

use proc_macro2::TokenStream;
use syn::visit_mut::{self, VisitMut};
use syn::{
    Error, Expr, FnArg, GenericArgument, Ident, ItemFn, Pat, PatIdent, Path, PathArguments,
    PathSegment, Result, ReturnType, Signature, TraitItemFn, Type, TypeImplTrait, TypeInfer,
    TypeParamBound,
};

use crate::args::unknown;

/// Parses the function, and refuses one that cannot be transactional.
pub(crate) fn read(item: TokenStream) -> Result<ItemFn> {
    let function: ItemFn = syn::parse2(item.clone()).map_err(|error| no_function(error, item))?;
    let signature = &function.sig;
    if let Some(word) = &signature.constness {
        let text = "a `const fn` cannot be transactional: write `async` for `const`";
        return Err(Error::new_spanned(word, text));
    }
    if let Some(abi) = &signature.abi {
        let text =
            "an `extern` function cannot be transactional: call a transactional `async fn` in it";
        return Err(Error::new_spanned(abi, text));
    }
    if signature.asyncness.is_none() {
        let text = "a transactional function is `async`: add `async` (under `#[async_trait]`, call an `async fn` of its own)";
        return Err(Error::new_spanned(signature.fn_token, text));
    }
    returned(signature)?;
    Ok(function)
}

fn no_function(error: Error, item: TokenStream) -> Error {
    match syn::parse2::<TraitItemFn>(item.clone()) {
        Ok(method) if method.default.is_none() => {
            let text =
                "this function has no body: put `#[transactional]` on the function in the `impl`";
            Error::new_spanned(method.sig, text)
        }
        _ => Error::new(
            error.span(),
            format!("`#[transactional]` is for an `async fn` with a body: {error}"),
        ),
    }
}

/// Where the database of the transaction is.
pub(crate) enum Database {
    /// An expression that the attribute was given, or an argument whose type is called `Db`.
    Known(Expr),
    /// An argument that is chosen by its name or because it is the only one. Its type may be an
    /// alias of `Db`; the compiler finds out.
    Guessed(Ident),
}

/// Finds the database: the expression that was given, else an argument.
pub(crate) fn database(given: Option<Expr>, signature: &Signature) -> Result<Database> {
    if let Some(db) = given {
        return match lone_name(&db) {
            Some(name) if !may_be_named(name, signature) => Err(unknown(name)),
            _ => Ok(Database::Known(db)),
        };
    }
    let mut found = signature.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(argument) if is_db(&argument.ty) => Some(&*argument.pat),
        _ => None,
    });
    match (found.next(), found.next()) {
        (Some(Pat::Ident(PatIdent { ident, .. })), None) => {
            Ok(Database::Known(syn::parse_quote!(#ident)))
        }
        (Some(unnamed), None) => {
            let text = "the transaction begins on this database: give the argument a name";
            Err(Error::new_spanned(unnamed, text))
        }
        (Some(_), Some(second)) => {
            let text = "a second database: say which one, as in `#[transactional(db)]`";
            Err(Error::new_spanned(second, text))
        }
        (None, _) => guess(signature)
            .map(Database::Guessed)
            .ok_or_else(|| no_database(signature)),
    }
}

/// Returns the argument, or part of one, that is called `db`; else the only argument.
fn guess(signature: &Signature) -> Option<Ident> {
    let names = names(&mut signature.clone()).all;
    if let Some(db) = names.into_iter().find(|name| name == "db") {
        return Some(db);
    }
    match signature.inputs.first()? {
        FnArg::Typed(only) if signature.inputs.len() == 1 => match &*only.pat {
            Pat::Ident(pattern) => Some(pattern.ident.clone()),
            _ => None,
        },
        _ => None,
    }
}

fn no_database(signature: &Signature) -> Error {
    let place = signature.receiver().map_or("app.db", |_| "self.db");
    let text = format!(
        "no argument is a `Db`, and none is called `db`: say where the database is, as in \
         `#[transactional({place})]`"
    );
    Error::new_spanned(&signature.ident, text)
}

fn lone_name(db: &Expr) -> Option<&Ident> {
    match db {
        Expr::Path(path) => path.path.get_ident(),
        _ => None,
    }
}

/// Returns whether an expression may use this name. A name in capitals may be a static.
fn may_be_named(name: &Ident, signature: &Signature) -> bool {
    let is_static = name.to_string().starts_with(char::is_uppercase);
    is_static || name == "self" || names(&mut signature.clone()).all.contains(name)
}

fn is_db(ty: &Type) -> bool {
    match ty {
        Type::Reference(reference) => is_db(&reference.elem),
        Type::Path(path) => last(&path.path).is_some_and(|segment| segment.ident == "Db"),
        _ => false,
    }
}

/// The names that the arguments bind.
#[derive(Default)]
pub(crate) struct Names {
    all: Vec<Ident>,
    /// The names that were `mut`.
    pub(crate) mutable: Vec<Ident>,
}

/// Returns the names that the arguments bind, and removes `mut` from them.
pub(crate) fn names(signature: &mut Signature) -> Names {
    let mut names = Names::default();
    for input in &mut signature.inputs {
        if let FnArg::Typed(argument) = input {
            names.visit_pat_mut(&mut argument.pat);
        }
    }
    names
}

impl VisitMut for Names {
    fn visit_pat_ident_mut(&mut self, pattern: &mut PatIdent) {
        self.all.push(pattern.ident.clone());
        if pattern.by_ref.is_none() && pattern.mutability.take().is_some() {
            self.mutable.push(pattern.ident.clone());
        }
        visit_mut::visit_pat_ident_mut(self, pattern);
    }
}

/// Returns the type that the function returns, which must not be `()`.
pub(crate) fn returned(signature: &Signature) -> Result<&Type> {
    match &signature.output {
        ReturnType::Type(_, ty) if !matches!(&**ty, Type::Tuple(unit) if unit.elems.is_empty()) => {
            Ok(ty)
        }
        _ => {
            let text = "a commit can fail: return `Result<(), E>` with `E: From<sqlx::Error>`";
            Err(Error::new_spanned(&signature.ident, text))
        }
    }
}

/// Returns the type as a body can write it: with `_` for each `impl Trait`.
pub(crate) fn nameable(ty: &Type) -> Type {
    let mut ty = ty.clone();
    Nameable.visit_type_mut(&mut ty);
    ty
}

struct Nameable;

impl VisitMut for Nameable {
    fn visit_type_mut(&mut self, ty: &mut Type) {
        if let Type::ImplTrait(_) = ty {
            *ty = Type::Infer(TypeInfer {
                underscore_token: syn::parse_quote!(_),
            });
        }
        visit_mut::visit_type_mut(self, ty);
    }
}

/// Whether the function returns `impl IntoResponse`. Such a value becomes a response inside the
/// transaction, because its status decides between commit and rollback.
pub(crate) enum Response<'a> {
    No,
    /// The whole value, by this trait.
    Whole(&'a Path),
    /// The value in the `Ok`, by this trait.
    Success(&'a Path),
}

pub(crate) fn response(returned: &Type) -> Response<'_> {
    let found = match returned {
        Type::ImplTrait(opaque) => into_response(opaque).map(Response::Whole),
        Type::Path(path) => last(&path.path)
            .and_then(success)
            .and_then(into_response)
            .map(Response::Success),
        _ => None,
    };
    found.unwrap_or(Response::No)
}

/// Returns the `impl Trait` of `Result<impl Trait, E>`.
fn success(segment: &PathSegment) -> Option<&TypeImplTrait> {
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else {
        return None;
    };
    match arguments.args.first()? {
        GenericArgument::Type(Type::ImplTrait(opaque)) if segment.ident == "Result" => Some(opaque),
        _ => None,
    }
}

fn into_response(opaque: &TypeImplTrait) -> Option<&Path> {
    let mut paths = opaque.bounds.iter().filter_map(|bound| match bound {
        TypeParamBound::Trait(bound) => Some(&bound.path),
        _ => None,
    });
    paths.find(|path| last(path).is_some_and(|segment| segment.ident == "IntoResponse"))
}

fn last(path: &Path) -> Option<&PathSegment> {
    path.segments.last()
}
