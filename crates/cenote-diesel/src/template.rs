//! What both managers know about each connection that they open.

use std::fmt;

use diesel::connection::{Instrumentation, get_default_instrumentation};

use crate::reset::Reset;
use crate::watch::Watch;

type MakeInstrumentation = dyn Fn() -> Option<Box<dyn Instrumentation>> + Send + Sync;

pub(crate) struct Template {
    pub(crate) url: String,
    pub(crate) reset: Reset,
    instrumentation: Box<MakeInstrumentation>,
}

impl Template {
    pub(crate) fn new(url: String) -> Self {
        Self {
            url,
            reset: Reset::default(),
            instrumentation: Box::new(get_default_instrumentation),
        }
    }

    pub(crate) fn instrumentation<I: Instrumentation>(
        &mut self,
        make: impl Fn() -> I + Send + Sync + 'static,
    ) {
        self.instrumentation = Box::new(move || Some(Box::new(make())));
    }

    pub(crate) fn watch(&self) -> Watch {
        Watch::new((self.instrumentation)())
    }
}

impl fmt::Debug for Template {
    /// Leaves out the URL, which contains the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Template")
            .field("reset", &self.reset)
            .finish_non_exhaustive()
    }
}
