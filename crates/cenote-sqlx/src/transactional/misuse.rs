//! Errors that the types find, not the attribute. The two examples of each pair differ in one
//! place: the first does not compile, the second does.
//!
//! The error must implement `From<sqlx::Error>`:
//!
//! ```compile_fail,E0277
//! # use cenote_sqlx::Db;
//! # use sqlx::Sqlite;
//! struct Problem;
//!
//! #[cenote_sqlx::transactional]
//! async fn work(db: &Db<Sqlite>) -> Result<(), Problem> { db.warm().await.map_err(|_| Problem) }
//! ```
//!
//! ```
//! # use cenote_sqlx::Db;
//! # use sqlx::Sqlite;
//! struct Problem;
//!
//! impl From<sqlx::Error> for Problem { fn from(_: sqlx::Error) -> Self { Self } }
//!
//! #[cenote_sqlx::transactional]
//! async fn work(db: &Db<Sqlite>) -> Result<(), Problem> { db.warm().await.map_err(|_| Problem) }
//! ```
//!
//! A number cannot express that the transaction failed:
//!
//! ```compile_fail,E0277
//! # use cenote_sqlx::Db;
//! # use sqlx::Sqlite;
//! #[cenote_sqlx::transactional]
//! async fn work(db: &Db<Sqlite>) -> usize { db.pool().status().idle }
//! ```
//!
//! ```
//! # use cenote_sqlx::Db;
//! # use sqlx::Sqlite;
//! #[cenote_sqlx::transactional]
//! async fn work(db: &Db<Sqlite>) -> Result<usize, sqlx::Error> { Ok(db.pool().status().idle) }
//! ```
//!
//! The named expression must be a database:
//!
//! ```compile_fail,E0308
//! # use cenote_sqlx::Db;
//! # use sqlx::Sqlite;
//! #[cenote_sqlx::transactional(path)]
//! async fn work(db: &Db<Sqlite>, path: &str) -> Result<usize, sqlx::Error> { Ok(path.len()) }
//! ```
//!
//! ```
//! # use cenote_sqlx::Db;
//! # use sqlx::Sqlite;
//! #[cenote_sqlx::transactional(db)]
//! async fn work(db: &Db<Sqlite>, path: &str) -> Result<usize, sqlx::Error> { Ok(path.len()) }
//! ```
//!
//! The only argument must be a database, or an alias of one:
//!
//! ```compile_fail,E0277
//! struct App { db: cenote_sqlx::Db<sqlx::Sqlite> }
//!
//! #[cenote_sqlx::transactional]
//! async fn work(app: &App) -> Result<bool, sqlx::Error> { Ok(app.db.in_transaction()) }
//! ```
//!
//! ```
//! struct App { db: cenote_sqlx::Db<sqlx::Sqlite> }
//!
//! #[cenote_sqlx::transactional(app.db)]
//! async fn work(app: &App) -> Result<bool, sqlx::Error> { Ok(app.db.in_transaction()) }
//! ```
//!
//! A body that may run again moves no argument:
//!
//! ```compile_fail,E0382
//! # use cenote_sqlx::Db;
//! # use sqlx::Sqlite;
//! #[cenote_sqlx::transactional(retry)]
//! async fn work(db: &Db<Sqlite>, text: String) -> Result<(), sqlx::Error> {
//!     drop(text);
//!     Ok(())
//! }
//! ```
//!
//! ```
//! # use cenote_sqlx::Db;
//! # use sqlx::Sqlite;
//! #[cenote_sqlx::transactional(retry)]
//! async fn work(db: &Db<Sqlite>, text: String) -> Result<(), sqlx::Error> {
//!     drop(text.clone());
//!     Ok(())
//! }
//! ```
//!
//! A `mut` argument of such a body must be `Clone`:
//!
//! ```compile_fail,E0277
//! # use cenote_sqlx::Db;
//! # use sqlx::Sqlite;
//! struct Count(u32);
//!
//! #[cenote_sqlx::transactional(retry)]
//! async fn work(db: &Db<Sqlite>, mut count: Count) -> Result<(), sqlx::Error> {
//!     count.0 += 1;
//!     Ok(())
//! }
//! ```
//!
//! ```
//! # use cenote_sqlx::Db;
//! # use sqlx::Sqlite;
//! #[derive(Clone)]
//! struct Count(u32);
//!
//! #[cenote_sqlx::transactional(retry)]
//! async fn work(db: &Db<Sqlite>, mut count: Count) -> Result<(), sqlx::Error> {
//!     count.0 += 1;
//!     Ok(())
//! }
//! ```
//!
//! The error of such a body must show its cause:
//!
//! ```compile_fail,E0277
//! # use cenote_sqlx::Db;
//! # use sqlx::Sqlite;
//! # #[derive(Debug)] struct Problem(sqlx::Error);
//! # impl From<sqlx::Error> for Problem { fn from(error: sqlx::Error) -> Self { Self(error) } }
//! #[cenote_sqlx::transactional(retry)]
//! async fn work(db: &Db<Sqlite>) -> Result<(), Problem> { Ok(()) }
//! ```
//!
//! ```
//! # use cenote_sqlx::Db;
//! # use sqlx::Sqlite;
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
//! async fn work(db: &Db<Sqlite>) -> Result<(), Problem> { Ok(()) }
//! ```
