//! The function under the attribute: whether it can be transactional, which database it has, and what it returns.

use proc_macro2::TokenStream;
use syn::visit_mut::{self, VisitMut};
use syn::{
    Error, Expr, FnArg, GenericArgument, Ident, ItemFn, Pat, PatIdent, Path, PathArguments,
    PathSegment, Result, ReturnType, Signature, TraitItemFn, Type, TypeImplTrait, TypeInfer,
    TypeParamBound,
};

use crate::args::unknown;

/// The function, if it is one that can be transactional.
pub(crate) fn read(item: TokenStream) -> Result<ItemFn> {
    let function: ItemFn = syn::parse2(item.clone()).map_err(|error| no_function(error, item))?;
    let signature = &function.sig;
    if let Some(word) = &signature.constness {
        let text = "a `const fn` cannot be transactional: write `async` for `const`";
        return Err(Error::new_spanned(word, text));
    }
    if let Some(abi) = &signature.abi {
        let text =
            "an `extern` function cannot be transactional: let it call an `async fn` that is";
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
            let text = "there is nothing to run here: put `#[transactional]` on the function in the `impl`";
            Error::new_spanned(method.sig, text)
        }
        _ => Error::new(
            error.span(),
            format!("`#[transactional]` is for an `async fn` with a body: {error}"),
        ),
    }
}

/// The database's expression: the one that was given, else the argument that is a `Db`.
pub(crate) fn database(given: Option<Expr>, signature: &Signature) -> Result<Expr> {
    if let Some(db) = given {
        return match lone_name(&db) {
            Some(name) if !may_be_named(name, signature) => Err(unknown(name)),
            _ => Ok(db),
        };
    }
    let mut found = signature.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(argument) if is_db(&argument.ty) => Some(&*argument.pat),
        _ => None,
    });
    match (found.next(), found.next()) {
        (Some(Pat::Ident(PatIdent { ident, .. })), None) => Ok(syn::parse_quote!(#ident)),
        (Some(unnamed), None) => {
            let text = "the transaction is begun on this database: give it a name";
            Err(Error::new_spanned(unnamed, text))
        }
        (Some(_), Some(second)) => {
            let text =
                "a second database: say on which the transaction is, as in `#[transactional(db)]`";
            Err(Error::new_spanned(second, text))
        }
        (None, _) => {
            let place = signature.receiver().map_or("app.db", |_| "self.db");
            let text = format!(
                "no argument is a `Db`: say where the database is, as in `#[transactional({place})]`"
            );
            Err(Error::new_spanned(&signature.ident, text))
        }
    }
}

fn lone_name(db: &Expr) -> Option<&Ident> {
    match db {
        Expr::Path(path) => path.path.get_ident(),
        _ => None,
    }
}

/// A name in capitals may be that of a static.
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
    /// Those that the body may change.
    pub(crate) mutable: Vec<Ident>,
}

/// Finds the names, and leaves none of them `mut`.
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

/// The type that the function returns.
pub(crate) fn returned(signature: &Signature) -> Result<&Type> {
    match &signature.output {
        ReturnType::Type(_, ty) if !matches!(&**ty, Type::Tuple(unit) if unit.elems.is_empty()) => {
            Ok(ty)
        }
        _ => {
            let text =
                "a failed commit must be told: return `Result<(), E>` with `E: From<sqlx::Error>`";
            Err(Error::new_spanned(&signature.ident, text))
        }
    }
}

/// The same type, as it can be named in a body: with `_` for each `impl Trait`.
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

/// How the value becomes a response, if the function returns `impl IntoResponse`: so its status is seen.
pub(crate) enum Response<'a> {
    No,
    /// All of it, by this trait.
    Whole(&'a Path),
    /// What is in the `Ok`.
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

/// `impl Trait` in `Result<impl Trait, E>`.
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
