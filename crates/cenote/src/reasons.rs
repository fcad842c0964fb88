//! Why a resource was closed and why an acquire was refused, with a counter for each reason.

use std::fmt;

/// Defines reasons, each with its name in metrics, and a counter for each of them.
macro_rules! reasons {
    (
        $(#[$enum_doc:meta])* enum $Reason:ident
        { $($(#[$doc:meta])* $reason:ident $name:literal;)* }
        $(#[$counts_doc:meta])* struct $Counts:ident
    ) => {
        $(#[$enum_doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $Reason {
            $($(#[$doc])* $reason,)*
        }

        impl $Reason {
            /// All reasons, in the order of their counts.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$reason),*];

            /// Returns the name for metrics, in lower case.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$reason => $name,)*
                }
            }
        }

        impl fmt::Display for $Reason {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }

        $(#[$counts_doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $Counts([u64; $Reason::ALL.len()]);

        impl $Counts {
            /// Returns how many there were for this reason.
            pub fn by(&self, reason: $Reason) -> u64 {
                self.0[reason as usize]
            }

            /// Returns how many there were in all.
            pub fn total(&self) -> u64 {
                self.0.iter().sum()
            }

            /// Returns every reason with its count.
            pub fn iter(&self) -> impl Iterator<Item = ($Reason, u64)> + '_ {
                $Reason::ALL.into_iter().zip(self.0)
            }

            pub(crate) fn add(&mut self, reason: $Reason) {
                self.0[reason as usize] += 1;
            }

            /// Returns the sums.
            pub(crate) fn and(&self, other: &Self) -> Self {
                Self(std::array::from_fn(|nth| self.0[nth] + other.0[nth]))
            }
        }
    };
}

reasons! {
    /// Why a resource was closed. [`Status`](crate::Status) has an example.
    enum CloseReason {
        /// It was idle for longer than `idle_timeout`.
        Idle "idle";
        /// It was older than `max_lifetime`.
        Lifetime "lifetime";
        /// It was lent `max_uses` times.
        Uses "uses";
        /// Its manager said that it was broken.
        Broken "broken";
        /// Its holder discarded it.
        Discarded "discarded";
        /// It failed its check.
        FailedCheck "failed_check";
        /// It could not be cleaned.
        FailedClean "failed_clean";
        /// A hook, the predicate of `retain`, or `is_spent` of its manager refused it.
        Refused "refused";
        /// `invalidate` retired it.
        Invalidated "invalidated";
        /// `resize` made it one too many, or `evict` closed it.
        Shrunk "shrunk";
        /// The pool was closed.
        PoolClosed "pool_closed";
    }
    /// How many resources were closed, by reason.
    ///
    /// ```
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
    /// use cenote::CloseReason;
    ///
    /// cenote::Lease::discard(pool.acquire_blocking()?);
    /// let closes = pool.status().closes;
    /// assert_eq!((closes.by(CloseReason::Discarded), closes.total()), (1, 1));
    /// for (reason, count) in closes.iter() {
    ///     println!("pool_closes{{reason=\"{}\"}} {count}", reason.name());
    /// }
    /// assert!(closes.iter().map(|(reason, _)| reason).eq(CloseReason::ALL));
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    struct Closes
}

reasons! {
    /// Why an acquire was refused before its time was over. Each is a variant of
    /// [`AcquireError`](crate::AcquireError).
    enum RefusalReason {
        /// `max_waiters` callers waited already.
        Rejected "rejected";
        /// The breaker was inactive.
        Unavailable "unavailable";
        /// The task held a lease already, and `nested` is `Deny`.
        Nested "nested";
        /// The pool was closed.
        Closed "closed";
    }
    /// How many acquires were refused, by reason.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
    /// use cenote::status::RefusalReason;
    ///
    /// pool.breaker().trip();
    /// assert!(pool.acquire().await.is_err());
    /// let refusals = pool.status().refusals;
    /// assert_eq!((refusals.by(RefusalReason::Unavailable), refusals.total()), (1, 1));
    /// # Ok(()) }
    /// ```
    struct Refusals
}
