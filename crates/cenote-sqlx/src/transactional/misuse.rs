//! What the attribute lets through and the types refuse. Each pair differs in one place: the first does not compile, the second does.
//!
//! The error must be made of `sqlx::Error`:
//!
//! ```compile_fail,E0277
//! struct Problem;
//!
//! #[cenote_sqlx::transactional]
//! async fn work(db: &cenote_sqlx::Db<sqlx::Sqlite>) -> Result<(), Problem> { db.warm().await.map_err(|_| Problem) }
//! ```
//!
//! ```
//! struct Problem;
//!
//! impl From<sqlx::Error> for Problem { fn from(_: sqlx::Error) -> Self { Self } }
//!
//! #[cenote_sqlx::transactional]
//! async fn work(db: &cenote_sqlx::Db<sqlx::Sqlite>) -> Result<(), Problem> { db.warm().await.map_err(|_| Problem) }
//! ```
//!
//! A number cannot say that the transaction failed:
//!
//! ```compile_fail,E0277
//! #[cenote_sqlx::transactional]
//! async fn work(db: &cenote_sqlx::Db<sqlx::Sqlite>) -> usize { db.pool().status().idle }
//! ```
//!
//! ```
//! #[cenote_sqlx::transactional]
//! async fn work(db: &cenote_sqlx::Db<sqlx::Sqlite>) -> Result<usize, sqlx::Error> { Ok(db.pool().status().idle) }
//! ```
//!
//! What is named must be a database:
//!
//! ```compile_fail,E0308
//! #[cenote_sqlx::transactional(path)]
//! async fn work(db: &cenote_sqlx::Db<sqlx::Sqlite>, path: &str) -> Result<usize, sqlx::Error> { Ok(path.len()) }
//! ```
//!
//! ```
//! #[cenote_sqlx::transactional(db)]
//! async fn work(db: &cenote_sqlx::Db<sqlx::Sqlite>, path: &str) -> Result<usize, sqlx::Error> { Ok(path.len()) }
//! ```
//!
//! A body that may run again uses no argument up:
//!
//! ```compile_fail,E0382
//! #[cenote_sqlx::transactional(retry)]
//! async fn work(db: &cenote_sqlx::Db<sqlx::Sqlite>, text: String) -> Result<(), sqlx::Error> { drop(text); Ok(()) }
//! ```
//!
//! ```
//! #[cenote_sqlx::transactional(retry)]
//! async fn work(db: &cenote_sqlx::Db<sqlx::Sqlite>, text: String) -> Result<(), sqlx::Error> { drop(text.clone()); Ok(()) }
//! ```
//!
//! It gets a fresh copy of what it changes:
//!
//! ```compile_fail,E0277
//! struct Count(u32);
//!
//! #[cenote_sqlx::transactional(retry)]
//! async fn work(db: &cenote_sqlx::Db<sqlx::Sqlite>, mut count: Count) -> Result<(), sqlx::Error> { count.0 += 1; Ok(()) }
//! ```
//!
//! ```
//! #[derive(Clone)]
//! struct Count(u32);
//!
//! #[cenote_sqlx::transactional(retry)]
//! async fn work(db: &cenote_sqlx::Db<sqlx::Sqlite>, mut count: Count) -> Result<(), sqlx::Error> { count.0 += 1; Ok(()) }
//! ```
//!
//! And its error tells its cause:
//!
//! ```compile_fail,E0277
//! # #[derive(Debug)] struct Problem(sqlx::Error);
//! # impl From<sqlx::Error> for Problem { fn from(error: sqlx::Error) -> Self { Self(error) } }
//! #[cenote_sqlx::transactional(retry)]
//! async fn work(db: &cenote_sqlx::Db<sqlx::Sqlite>) -> Result<(), Problem> { Ok(()) }
//! ```
//!
//! ```
//! # #[derive(Debug)] struct Problem(sqlx::Error);
//! # impl From<sqlx::Error> for Problem { fn from(error: sqlx::Error) -> Self { Self(error) } }
//! # impl std::fmt::Display for Problem {
//! #     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str("no") }
//! # }
//! impl std::error::Error for Problem {
//!     fn source(&self) -> Option<&(dyn std::error::Error + 'static)> { Some(&self.0) }
//! }
//!
//! #[cenote_sqlx::transactional(retry)]
//! async fn work(db: &cenote_sqlx::Db<sqlx::Sqlite>) -> Result<(), Problem> { Ok(()) }
//! ```
