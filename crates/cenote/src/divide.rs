//! One pool per worker: the settings of one pool, divided.

use crate::config::{Config, ConfigError, require};

impl Config {
    /// Divides these settings over `workers` pools, one for each. Each pool gets its part of
    /// `max_size`, `min_size` and `min_idle`; the first ones get the remainders. A name gets the
    /// number of the worker. All other settings stay as they are.
    ///
    /// It fails if there are fewer resources than workers, because a pool without a resource would
    /// serve no caller.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote::Config;
    /// use cenote::local::LocalPool;
    ///
    /// let total = Config { name: Some("db".into()), max_size: 10, ..Config::default() };
    /// let parts = total.divide(4)?;
    /// let sizes: Vec<_> = parts.iter().map(|part| part.max_size).collect();
    /// assert_eq!(sizes, [3, 3, 2, 2]);
    /// assert_eq!(parts[3].name.as_deref(), Some("db (worker 4)"));
    ///
    /// // In the thread of each worker:
    /// let part = parts[0].clone();
    /// let pool = LocalPool::from_fn(async || Ok::<_, &str>(())).config(part).build()?;
    /// assert_eq!(pool.config().max_size, 3);
    ///
    /// assert_eq!(total.divide(11).unwrap_err().field(), "max_size");
    /// # Ok(()) }
    /// ```
    pub fn divide(&self, workers: usize) -> Result<Vec<Self>, ConfigError> {
        require(workers >= 1, "workers", workers, "at least 1")?;
        let allowed = format!("at least one for each of {workers} workers");
        require(
            self.max_size >= workers,
            "max_size",
            self.max_size,
            &allowed,
        )?;
        let part =
            |total: usize, worker: usize| total / workers + usize::from(worker < total % workers);
        let config = |worker| Self {
            name: (self.name.as_ref()).map(|name| format!("{name} (worker {})", worker + 1)),
            max_size: part(self.max_size, worker),
            min_size: part(self.min_size, worker),
            min_idle: part(self.min_idle, worker),
            ..self.clone()
        };
        Ok((0..workers).map(config).collect())
    }
}
