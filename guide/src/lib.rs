#![doc = include_str!("../README.md")]

#[doc = include_str!("../01-getting-started.md")]
pub mod getting_started {}

#[doc = include_str!("../02-choosing-sizes.md")]
pub mod choosing_sizes {}

#[doc = include_str!("../03-timeouts-and-deadlines.md")]
pub mod timeouts_and_deadlines {}

#[doc = include_str!("../04-transactions-and-scopes.md")]
pub mod transactions_and_scopes {}

#[doc = include_str!("../05-testing.md")]
pub mod testing {}

#[doc = include_str!("../06-operations.md")]
pub mod operations {}

#[doc = include_str!("../07-writing-a-manager.md")]
pub mod writing_a_manager {}

#[doc = include_str!("../08-how-it-works.md")]
pub mod how_it_works {}

#[doc = include_str!("../09-migration.md")]
pub mod migration {}

#[doc = include_str!("../10-fleets.md")]
pub mod fleets {}
