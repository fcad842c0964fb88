//! A bound lease: it goes back to its scope while it is pinned there, and to its pool otherwise.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::seat::Seat;
use crate::lease::Lease;
use crate::manager::{LeaseEnd, Manager};
use crate::shell::pooled::Stay;

/// A lease that was taken by [`Pool::bind`](crate::Pool::bind): exclusive, like any lease.
///
/// It dereferences to its [`Lease`]. When it is dropped, it rests in its scope if it is pinned
/// there or if its manager says that it [must stay](Manager::must_stay). Otherwise it goes back to
/// its pool. Its own functions are called as `Bound::pin(&mut
/// bound)`, so that they never hide a method of the resource.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
/// use cenote::scope::Bound;
/// # use cenote::scope::BindError;
///
/// cenote::scope(async {
///     let mut bound = pool.bind().await?;
///     assert!(Bound::pin(&mut bound) && Bound::is_pinned(&bound));
///     drop(bound);
///     assert_eq!(pool.status().in_use, 1, "it rests in the scope");
///
///     let mut bound = pool.bind().await?;
///     Bound::unpin(&mut bound);
///     drop(bound);
///     assert_eq!(pool.status().in_use, 0, "it went back");
///
///     Bound::discard(pool.bind().await?);
///     assert_eq!(pool.status().closes.total(), 1);
///     Ok::<_, BindError<_>>(())
/// })
/// .await?;
///
/// let mut outside = pool.bind().await?;
/// assert!(!Bound::pin(&mut outside), "there is no scope here");
/// # Ok(()) }
/// ```
#[must_use = "a lease that is not kept goes back at once"]
pub struct Bound<M: Manager + 'static> {
    /// Present until it ends.
    pub(super) lease: Option<Lease<M>>,
    pub(super) seat: Option<Arc<Seat<M>>>,
    /// Whether it is the lease that has the seat.
    pub(super) seated: bool,
    /// Whether it was pinned there. The only lease of a scope has the seat unpinned.
    pub(super) pinned: bool,
}

impl<M: Manager + 'static> Bound<M> {
    pub(super) fn seated(lease: Lease<M>, seat: Arc<Seat<M>>) -> Self {
        Self {
            lease: Some(lease),
            seat: Some(seat),
            seated: true,
            pinned: true,
        }
    }

    /// An empty bound, for a lease that goes from its seat straight to its pool.
    pub(super) fn nowhere() -> Self {
        Self {
            lease: None,
            seat: None,
            seated: false,
            pinned: false,
        }
    }

    /// Pins it once more. It stays in its scope until it is unpinned as often, or the scope ends.
    /// Returns false, and does nothing, outside a scope and where another lease of this pool is
    /// pinned already.
    pub fn pin(this: &mut Self) -> bool {
        let Some(seat) = &this.seat else { return false };
        this.seated = seat.pin(this.seated, Lease::site(this));
        this.pinned = this.seated;
        this.pinned
    }

    /// Takes one pin away. After the last one is taken, the lease goes back to its pool when it is
    /// dropped.
    pub fn unpin(this: &mut Self) {
        if let Some(seat) = this.seat.as_ref().filter(|_| this.seated) {
            seat.unpin();
        }
    }

    /// Returns whether this is the lease that is pinned in its scope, or was just unpinned.
    pub fn is_pinned(this: &Self) -> bool {
        this.pinned
    }

    /// Ends the lease and closes the resource, because it is known to be bad. The next bind gets a
    /// fresh one.
    pub fn discard(mut this: Self) {
        if let Some(lease) = this.lease.take() {
            Lease::discard(lease);
        }
    }

    /// Takes the resource out of the pool for good, as [`Lease::detach`] does.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(String::new())).build()?;
    /// let text: String = cenote::scope::Bound::detach(pool.bind().await?);
    /// assert_eq!((text.as_str(), pool.status().total), ("", 0));
    /// # Ok(()) }
    /// ```
    pub fn detach(mut this: Self) -> M::Resource {
        Lease::detach(this.lease.take().expect(ENDED))
    }
}

impl<M: Manager + 'static> Bound<M> {
    /// Ends this use. Inside a scope, the manager says whether the lease stays there.
    pub(super) fn end(mut this: Self, end: LeaseEnd) {
        this.go(end);
    }

    fn go(&mut self, end: LeaseEnd) {
        let (lease, seat) = (self.lease.take(), self.seat.take());
        match (lease, seat) {
            (Some(mut lease), Some(seat)) => {
                let stay = Lease::stay(&mut lease, end);
                let takes_seat = || stay == Stay::Must && seat.take_seat(Lease::site(&lease));
                if self.seated || takes_seat() {
                    seat.come_home(Some(lease), stay);
                } else {
                    Lease::end(lease, end);
                }
            }
            (Some(lease), None) => Lease::end(lease, end),
            // It was discarded.
            (None, Some(seat)) if self.seated => seat.come_home(None, Stay::Broken),
            (None, _) => {}
        }
    }
}

impl<M: Manager + 'static> Drop for Bound<M> {
    fn drop(&mut self) {
        self.go(LeaseEnd::of_drop());
    }
}

const ENDED: &str = "a bound has its lease until it ends";

impl<M: Manager + 'static> Deref for Bound<M> {
    type Target = Lease<M>;

    fn deref(&self) -> &Lease<M> {
        self.lease.as_ref().expect(ENDED)
    }
}

impl<M: Manager + 'static> DerefMut for Bound<M> {
    fn deref_mut(&mut self) -> &mut Lease<M> {
        self.lease.as_mut().expect(ENDED)
    }
}

impl<M: Manager + 'static> fmt::Debug for Bound<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bound")
            .field("id", &self.lease.as_ref().map(Lease::id))
            .field("pinned", &self.pinned)
            .finish_non_exhaustive()
    }
}
