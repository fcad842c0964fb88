//! The bridge for managers of bb8.

use std::error::Error;

use bb8::{CustomizeConnection, ManageConnection};
use cenote::{LeaseEnd, Manager};

/// A manager of bb8 in cenote's pool. Its connections are lent as they are.
///
/// `connect` opens, `is_valid` checks, `has_broken` is asked at every return and before an idle
/// connection is lent. A connection is closed by its destructor.
///
/// ```
/// use cenote::Pool;
/// use cenote_bridge::Bb8;
///
/// struct Words;
///
/// impl bb8::ManageConnection for Words {
///     type Connection = String;
///     type Error = std::io::Error;
///
///     async fn connect(&self) -> std::io::Result<String> {
///         Ok("hello".to_owned())
///     }
///
///     async fn is_valid(&self, _: &mut String) -> std::io::Result<()> {
///         Ok(())
///     }
///
///     fn has_broken(&self, word: &mut String) -> bool {
///         word.is_empty()
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = Pool::builder(Bb8::new(Words)).max_size(1).build()?;
/// pool.acquire().await?.clear(); // broken now
/// assert_eq!(*pool.acquire().await?, "hello", "it is another one");
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Bb8<M: ManageConnection> {
    manager: M,
    customizer: Option<Box<dyn CustomizeConnection<M::Connection, M::Error>>>,
}

impl<M: ManageConnection> Bb8<M> {
    /// Wraps a manager of bb8.
    pub fn new(manager: M) -> Self {
        Self {
            manager,
            customizer: None,
        }
    }

    /// Sets what is done with each new connection, as the method of bb8's builder does.
    pub fn connection_customizer(
        mut self,
        customizer: Box<dyn CustomizeConnection<M::Connection, M::Error>>,
    ) -> Self {
        self.customizer = Some(customizer);
        self
    }

    /// Returns the manager of bb8.
    pub fn original(&self) -> &M {
        &self.manager
    }
}

/// The error is the one of the manager. It may be any error, a boxed error or a text.
impl<M> Manager for Bb8<M>
where
    M: ManageConnection,
    M::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Resource = M::Connection;
    type Error = M::Error;

    async fn open(&self) -> Result<M::Connection, M::Error> {
        let mut connection = self.manager.connect().await?;
        if let Some(customizer) = &self.customizer {
            customizer.on_acquire(&mut connection).await?;
        }
        Ok(connection)
    }

    async fn check(&self, connection: &mut M::Connection) -> Result<(), M::Error> {
        self.manager.is_valid(connection).await
    }

    fn is_broken(&self, connection: &mut M::Connection, _: LeaseEnd) -> bool {
        self.manager.has_broken(connection)
    }
}
