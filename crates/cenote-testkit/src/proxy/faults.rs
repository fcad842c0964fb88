//! The faults of a proxy's network: plain data that every connection reads.

use std::time::Duration;

/// A direction through the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the client to the server: requests.
    ToServer,
    /// From the server to the client: replies.
    ToClient,
    /// Both directions.
    Both,
}

impl Way {
    /// Returns the direction as indices of [`Faults::lanes`].
    pub(super) fn lanes(self) -> &'static [usize] {
        match self {
            Self::ToServer => &[0],
            Self::ToClient => &[1],
            Self::Both => &[0, 1],
        }
    }
}

/// The end of a connection that has passed the bytes of its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It is reset (RST), for both sides.
    Reset,
    /// It is closed in good order (FIN), for both sides.
    Close,
    /// It stalls in that direction until it is resumed.
    Stall,
    /// It loses all further bytes in that direction.
    Lose,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Faults {
    /// Index 0 is the direction to the server, index 1 the direction to the client.
    pub(super) lanes: [Lane; 2],
    pub(super) slow_start: SlowStart,
    pub(super) black_hole: bool,
    /// Connections with a lower number than this one end in this way.
    pub(super) cut: Option<(u64, Cut)>,
    /// How many limits were set so far. It is the serial of the newest one.
    pub(super) limits: u64,
}

impl Faults {
    pub(super) fn change_lanes(&mut self, way: Way, change: impl Fn(&mut Lane)) {
        for &lane in way.lanes() {
            change(&mut self.lanes[lane]);
        }
    }

    pub(super) fn heal(&mut self) {
        *self = Self {
            cut: self.cut,
            limits: self.limits,
            ..Self::default()
        };
    }
}

/// The faults of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lane {
    pub(super) delay: Duration,
    pub(super) stalled: bool,
    pub(super) lossy: bool,
    /// Connections with a lower number than this one lose all bytes.
    pub(super) deaf_before: u64,
    /// Connections with a lower number than this one stall.
    pub(super) frozen_before: u64,
    pub(super) limit: Option<Limit>,
}

/// Each connection counts down from `bytes` when it sees a new serial.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    pub(super) serial: u64,
    pub(super) bytes: u64,
    pub(super) then: Then,
}

/// The first bytes of this connection and of all later ones are slow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SlowStart {
    pub(super) bytes: u64,
    pub(super) delay: Duration,
    pub(super) from: u64,
}

/// How the proxy ends a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    Reset,
    Close,
}
