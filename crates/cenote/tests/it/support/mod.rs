//! Helpers that several files of these tests share. The rig itself is in the test kit.

pub(crate) mod every_event;
pub(crate) mod hooks;
pub(crate) mod local_rig;
pub(crate) mod openings;
pub(crate) mod rigs;
pub(crate) mod runtimes;
pub(crate) mod scribe;
pub(crate) mod status_rules;
pub(crate) mod text;
pub(crate) mod two_levels;
