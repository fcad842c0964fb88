//! What the log says: level, fields and text of every line, and what it never does.

mod bad_subscriber;
mod capture;
mod notes;
mod slow;
mod storms;
mod warnings;
