//! Advice: what the numbers of a pool mean, in plain words.

mod size;
#[cfg(all(test, not(cenote_model)))]
mod tests;

use std::fmt;
use std::time::Duration;

use crate::breaker::BreakerState;
use crate::manager::Manager;
use crate::pool::Pool;
use crate::registry::Living;
use crate::status::{HolderGroup, Status, is_known};

/// One thing that an operator should know about a pool, with its numbers: from [`Pool::advice`].
///
/// ```
/// use std::time::Duration;
/// use cenote::Status;
/// use cenote::status::{Advice, AdviceKind};
///
/// let earlier = Status::default();
/// let mut later = Status::default();
/// (later.max_size, later.acquired, later.released) = (10, 6000, 6000);
/// later.held_time = Duration::from_secs(192);
///
/// let advice = Advice::between(&earlier, &later, Duration::from_secs(60));
/// assert_eq!(advice[0].kind, AdviceKind::Plenty);
/// assert_eq!(
///     advice[0].to_string(),
///     "offered load 3.2: 10 are plenty, a `max_size` of 9 would serve 99 % without a wait, by \
///      Erlang C",
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Advice {
    /// What it is about.
    pub kind: AdviceKind,
    /// One line of plain words.
    pub text: String,
}

/// What an [`Advice`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AdviceKind {
    /// The breaker is inactive, or recovers.
    Breaker,
    /// The pool is suspended.
    Suspended,
    /// Opens fail.
    OpensFail,
    /// Opens take long.
    OpensHang,
    /// Closes fail.
    ClosesFail,
    /// Every lease was taken by a task that now waits for this pool.
    Nested,
    /// One line of code holds many leases, or holds a lease for long.
    Held,
    /// A caller does not poll its acquire.
    NotPolled,
    /// More resources would be used.
    TooSmall,
    /// Callers wait for opens.
    OpensOnDemand,
    /// Callers wait though few resources are in use on average.
    Bursts,
    /// Fewer resources would do.
    Plenty,
}

impl Advice {
    /// Returns the advice on the size of a pool, by two looks at it that are `elapsed` apart. It
    /// needs at least 100 leases and ten seconds. [`Advice`] has an example.
    pub fn between(earlier: &Status, later: &Status, elapsed: Duration) -> Vec<Self> {
        size::advice(earlier, later, elapsed).into_iter().collect()
    }

    fn new(kind: AdviceKind, text: String) -> Self {
        Self { kind, text }
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<M: Manager + 'static> Pool<M> {
    /// Returns what an operator should know about the pool now, in plain words and with their
    /// numbers: what is wrong first, and then whether its size fits its load since it was built.
    /// An [annex](crate::Builder::annex) has advice of its own.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).max_size(1).build()?;
    /// # use std::time::Duration;
    /// assert!(pool.advice().is_empty());
    ///
    /// let _forgotten = pool.acquire().await?;
    /// tokio::time::sleep(Duration::from_millis(12_400)).await;
    /// let advice = pool.advice()[0].to_string(); // 1 of 1 held by src/main.rs:12 for …
    /// assert!(advice.ends_with("for up to 12.4s: a leak or slow work"), "{advice}");
    /// # Ok(()) }
    /// ```
    pub fn advice(&self) -> Vec<Advice> {
        Living::advice(&*self.shared, None)
    }

    /// As [`advice`](Pool::advice), with the load since `earlier`, a status of this pool from
    /// `elapsed` ago.
    ///
    /// ```
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
    /// # use std::time::Duration;
    /// let earlier = pool.status();
    /// // a minute later
    /// assert!(pool.advice_since(&earlier, Duration::from_secs(60)).is_empty());
    /// # Ok::<_, cenote::ConfigError>(())
    /// ```
    pub fn advice_since(&self, earlier: &Status, elapsed: Duration) -> Vec<Advice> {
        Living::advice(&*self.shared, Some((earlier, elapsed)))
    }
}

/// The state of a pool, as far as advice depends on it.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) status: Status,
    /// How long the pool has lived.
    pub(crate) age: Duration,
    pub(crate) holders: Vec<HolderGroup>,
    pub(crate) nested: bool,
    pub(crate) suspended: bool,
    pub(crate) breaker: BreakerState,
    /// How long the breaker has been in this state.
    pub(crate) breaker_for: Duration,
    /// Since when opens have failed without a success.
    pub(crate) failing_for: Option<Duration>,
    /// How long the oldest open takes by now.
    pub(crate) opening_for: Option<Duration>,
    pub(crate) leak_after: Option<Duration>,
}

/// Shorter than this, nothing is held for long and no open hangs.
const LONG: Duration = Duration::from_secs(1);

/// How many call sites are named.
const SITES: usize = 3;

/// Returns what is wrong now. `failure` is the text of the last error of an open.
pub(crate) fn present(facts: &Facts, failure: Option<&str>) -> Vec<Advice> {
    let mut all = Vec::new();
    let mut say = |kind, text| all.push(Advice::new(kind, text));
    let because = failure.map_or(String::new(), |failure| format!(": {failure}"));
    if facts.breaker != BreakerState::Active {
        let (state, time) = (facts.breaker, facts.breaker_for);
        let text = format!("the breaker has been {state} for {time:.1?}{because}");
        say(AdviceKind::Breaker, text);
    }
    if facts.suspended {
        let text = "the pool is suspended: call `resume`".to_owned();
        say(AdviceKind::Suspended, text);
    }
    if let Some(time) = facts.failing_for {
        let text = format!("no open has succeeded for {time:.1?}{because}");
        say(AdviceKind::OpensFail, text);
    }
    if let Some(time) = facts.opening_for.filter(|time| *time >= LONG) {
        let opening = facts.status.opening;
        let text = format!("{opening} opens take {time:.1?} by now: the backend does not answer");
        say(AdviceKind::OpensHang, text);
    }
    if facts.status.close_failed > 0 {
        let (failed, closes) = (facts.status.close_failed, facts.status.closes.total());
        let text = format!("{failed} of {closes} closes failed or hung: see `close_timeout`");
        say(AdviceKind::ClosesFail, text);
    }
    if facts.nested {
        let text = "every lease was taken by a task that now waits for this pool: take one lease \
                    per task and pass it along";
        say(AdviceKind::Nested, text.to_owned());
    }
    all.extend(held(&facts.status, &facts.holders, facts.leak_after));
    all
}

/// Returns the call sites that hold long, the longest first: where they hold as many leases as all
/// others together and none is left, or where they look like leaks.
pub(crate) fn held(
    status: &Status,
    holders: &[HolderGroup],
    leak_after: Option<Duration>,
) -> Vec<Advice> {
    let is_empty = status.in_use >= status.max_size;
    let is_much = |group: &HolderGroup| is_empty && group.count * 2 >= status.in_use;
    let is_leak = |group: &HolderGroup| leak_after.is_some_and(|after| group.longest >= after);
    let long = holders.iter().filter(|group| group.longest >= LONG);
    let named = long.filter(|group| is_much(group) || is_leak(group) || !group.claimed);
    let all = named.take(SITES).map(|group| say_held(group, status));
    all.collect()
}

fn say_held(group: &HolderGroup, status: &Status) -> Advice {
    let HolderGroup { count, longest, .. } = group;
    let of = status.max_size;
    let (file, line) = (group.site.file(), group.site.line());
    let site = match is_known(group.site) {
        true => format!(" {file}:{line}"),
        false => String::new(),
    };
    if !group.claimed {
        let text = format!(
            "{count} of {of} granted to{site} and not taken for {longest:.1?}: poll the acquire, \
             or drop it"
        );
        return Advice::new(AdviceKind::NotPolled, text);
    }
    let by = if site.is_empty() { "" } else { " by" };
    let label = group.label.as_ref();
    let label = label.map_or(String::new(), |label| format!(" ({label})"));
    let why = match group.used {
        Some(used) if used.time >= *longest / 2 => format!("slow work, {used}"),
        Some(used) => format!("a leak, or kept without need: only {used}"),
        None => "a leak or slow work".to_owned(),
    };
    let text = format!("{count} of {of} held{by}{site}{label} for up to {longest:.1?}: {why}");
    Advice::new(AdviceKind::Held, text)
}
