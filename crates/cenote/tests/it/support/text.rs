//! The texts of errors and panics.

use std::any::Any;
use std::error::Error;

/// Returns the text of an error and the texts of its causes.
pub(crate) fn chain(error: &dyn Error) -> Vec<String> {
    let mut texts = Vec::new();
    let mut link = Some(error);
    while let Some(error) = link {
        texts.push(error.to_string());
        link = error.source();
    }
    texts
}

pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(no message)")
}
