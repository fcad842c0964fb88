//! A subscriber of `tracing` that keeps every line and every span of the core, for one thread.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Metadata, Subscriber};

/// A line of the log.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) level: Level,
    pub(super) text: String,
    fields: BTreeMap<&'static str, String>,
    /// The spans in which it was written, the innermost last.
    pub(super) spans: Vec<&'static str>,
}

impl Line {
    #[track_caller]
    pub(super) fn field(&self, name: &str) -> &str {
        let value = self.fields.get(name);
        value.unwrap_or_else(|| panic!("no field `{name}` in {self:?}"))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }
}

/// A span that was made, with its parent.
#[derive(Clone, Debug)]
pub(super) struct SeenSpan {
    pub(super) name: &'static str,
    pub(super) fields: BTreeMap<&'static str, String>,
    pub(super) parent: Option<Id>,
    pub(super) is_closed: bool,
}

/// Keeps the lines of this thread until it is dropped.
pub(super) struct Capture {
    kept: Arc<Mutex<Kept>>,
    _guard: DefaultGuard,
}

#[derive(Default)]
struct Kept {
    lines: Vec<Line>,
    spans: Vec<SeenSpan>,
    /// The spans that the thread is in.
    entered: Vec<Id>,
}

impl Capture {
    pub(super) fn start() -> Self {
        let kept = Arc::<Mutex<Kept>>::default();
        let keeper = Keeper(Arc::clone(&kept));
        Self {
            kept,
            _guard: tracing::subscriber::set_default(keeper),
        }
    }

    /// Returns the lines whose text begins like this.
    pub(super) fn of(&self, start: &str) -> Vec<Line> {
        let kept = locked(&self.kept);
        let lines = kept.lines.iter();
        lines
            .filter(|line| line.text.starts_with(start))
            .cloned()
            .collect()
    }

    /// Returns the only line whose text begins like this.
    #[track_caller]
    pub(super) fn one(&self, start: &str) -> Line {
        let mut lines = self.of(start);
        assert_eq!(lines.len(), 1, "`{start}` in {:?}", self.of(""));
        lines.remove(0)
    }

    pub(super) fn spans(&self) -> Vec<SeenSpan> {
        locked(&self.kept).spans.clone()
    }
}

struct Keeper(Arc<Mutex<Kept>>);

fn locked(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().expect("no test panics under this lock")
}

impl Kept {
    fn span(&self, id: &Id) -> &SeenSpan {
        &self.spans[id.into_u64() as usize - 1]
    }

    fn path(&self) -> Vec<&'static str> {
        let mut path = Vec::new();
        let mut next = self.entered.last();
        while let Some(id) = next {
            path.insert(0, self.span(id).name);
            next = self.span(id).parent.as_ref();
        }
        path
    }
}

impl Subscriber for Keeper {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        ["cenote", "test"].contains(&metadata.target())
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields::default();
        span.record(&mut fields);
        let mut kept = locked(&self.0);
        let parent = match span.is_contextual() {
            true => kept.entered.last().cloned(),
            false => span.parent().cloned(),
        };
        kept.spans.push(SeenSpan {
            name: span.metadata().name(),
            fields: fields.0,
            parent,
            is_closed: false,
        });
        Id::from_u64(kept.spans.len() as u64)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut kept = locked(&self.0);
        let line = Line {
            level: *event.metadata().level(),
            text: fields.0.remove("message").unwrap_or_default(),
            fields: fields.0,
            spans: kept.path(),
        };
        kept.lines.push(line);
    }

    fn enter(&self, span: &Id) {
        locked(&self.0).entered.push(span.clone());
    }

    fn exit(&self, _: &Id) {
        locked(&self.0).entered.pop();
    }

    fn try_close(&self, id: Id) -> bool {
        locked(&self.0).spans[id.into_u64() as usize - 1].is_closed = true;
        true
    }
}

#[derive(Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}
