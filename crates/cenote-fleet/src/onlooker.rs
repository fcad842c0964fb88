//! A look at a group from outside.

use crate::cell::Cell;
use crate::engine::{Engine, EngineError};
use crate::fleet::Joining;
use crate::step::Counts;

/// Looks at a group without being a member of it, for programs that watch a fleet. It makes no
/// table and no bucket, and no member counts its sessions. With MariaDB it leaves a row in the
/// table of nudges, which is in memory.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// use cenote_fleet::{Fleet, FleetStatus, Memory};
///
/// let engine = Memory::new();
/// let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
/// let fleet = Fleet::on(engine.clone()).capacity(80).name("api-3").join(&pool).await?;
///
/// let look = Fleet::on(engine).onlooker().look().await?.expect("the group has a member");
/// let status = FleetStatus::from(&look.cell);
/// assert_eq!((status.capacity, status.members[0].name.as_str()), (80, "api-3"));
/// # drop(fleet);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Onlooker<E> {
    engine: E,
}

/// What an [`Onlooker`] has seen.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Look {
    /// The value that the members share.
    pub cell: Cell,
    /// The sessions at the server, by the tag of their member. `None` if the engine cannot count
    /// them.
    pub counts: Option<Counts>,
}

impl<E: Engine> Joining<E> {
    /// Looks at the group in place of joining it.
    pub fn onlooker(mut self) -> Onlooker<E> {
        self.engine.only_look();
        let engine = self.engine;
        Onlooker { engine }
    }
}

impl<E: Engine> Onlooker<E> {
    /// Looks at the group. Returns `None` if the engine has no value for it. It connects if it has
    /// to, and has no time limit.
    ///
    /// # Cancel safety
    /// The next look connects again if it has to.
    pub async fn look(&mut self) -> Result<Option<Look>, EngineError> {
        self.engine.connect().await?;
        let Some(bytes) = self.engine.read().await?.bytes else {
            return Ok(None);
        };
        let counts = self.engine.count().await?;
        let cell = Cell::decode(&bytes)?;
        Ok(Some(Look { cell, counts }))
    }

    /// Lists the groups of the engine. `None` if it has no list.
    pub async fn groups(&mut self) -> Result<Option<Vec<String>>, EngineError> {
        self.engine.connect().await?;
        self.engine.groups().await
    }
}
