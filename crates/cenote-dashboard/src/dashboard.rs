//! The settings of the page, and the handle to it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use cenote_fleet::{Fleet, FleetWatch};

use crate::routes;
use crate::sampler::Shared;
use crate::token::Token;

/// Faster frames would only be work: the eye does not read faster.
const FASTEST: Duration = Duration::from_millis(50);

/// The settings of a live page. It shows every pool of the process, and changes none unless
/// [`actions`](Dashboard::actions) allows it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use axum::Router;
/// use cenote_dashboard::Dashboard;
///
/// let app: Router = Router::new().nest("/pools", Dashboard::new().routes());
/// # drop(app);
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "the page is served by its routes"]
pub struct Dashboard {
    pub(crate) interval: Duration,
    pub(crate) max_clients: usize,
    pub(crate) token: Option<Token>,
    pub(crate) hosts: Vec<String>,
    pub(crate) fleets: Vec<FleetWatch>,
}

impl Default for Dashboard {
    fn default() -> Self {
        Self::new()
    }
}

impl Dashboard {
    /// A page that shows and changes nothing, with four updates a second for up to 32 clients.
    pub fn new() -> Self {
        Self {
            interval: Duration::from_millis(250),
            max_clients: 32,
            token: None,
            hosts: Vec::new(),
            fleets: Vec::new(),
        }
    }

    /// Sets how often open pages are updated. Default 250 ms, at least 50 ms.
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval.max(FASTEST);
        self
    }

    /// Sets how many pages may be open at once. More get the status 503. Default 32.
    pub fn max_clients(mut self, max_clients: usize) -> Self {
        self.max_clients = max_clients;
        self
    }

    /// Allows requests with this token to resize, invalidate, suspend, resume and close pools, and
    /// to operate their breakers. Default: not allowed.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote_dashboard::{Dashboard, Token};
    ///
    /// # let secret = "f0e4c2f76c58916ec258f246851bea09";
    /// let token = Token::new(secret)?; // from a file or the environment
    /// let routes: axum::Router = Dashboard::new().actions(token).routes();
    /// # drop(routes);
    /// # Ok(()) }
    /// ```
    pub fn actions(mut self, token: Token) -> Self {
        self.token = Some(token);
        self
    }

    /// Adds a host name under which the page may be reached, such as `ops.example.com` or
    /// `localhost:3000`. Without a port, all ports are meant. Default: every name.
    ///
    /// With a list, a request to another name gets the status 421. This stops pages of other sites
    /// that let their own name lead to this server.
    pub fn host(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into());
        self
    }

    /// Shows a fleet on the page of its pool: its members, their shares and wishes, and how the
    /// budget was divided in the last minutes.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote_dashboard::Dashboard;
    /// use cenote_fleet::{Fleet, Memory};
    ///
    /// let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
    /// let fleet = Fleet::on(Memory::new()).capacity(80).join(&pool).await?;
    /// let routes: axum::Router = Dashboard::new().fleet(&fleet).routes();
    /// # drop(routes);
    /// # Ok(()) }
    /// ```
    pub fn fleet(mut self, fleet: &Fleet) -> Self {
        self.fleets.push(fleet.watch());
        self
    }

    /// Starts the page. The handle can end it.
    pub fn start(self) -> Page {
        let shared = Shared::new(self);
        shared.keep_running();
        Page { shared }
    }

    /// Starts the page, and returns its routes. Mount them with `Router::nest`.
    pub fn routes<S: Clone + Send + Sync + 'static>(self) -> Router<S> {
        self.start().routes()
    }
}

/// A handle to a live page, from [`Dashboard::start`].
///
/// A task looks at the pools as long as this handle, a clone of it or the routes exist. Without a
/// runtime, the first request starts it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use axum::Router;
/// use cenote_dashboard::Dashboard;
///
/// let page = Dashboard::new().start();
/// let app: Router = Router::new().nest("/pools", page.routes());
/// // In a graceful shutdown, before the server waits for its connections:
/// page.end();
/// # drop(app);
/// # }
/// ```
#[derive(Clone)]
pub struct Page {
    shared: Arc<Shared>,
}

impl Page {
    /// Returns the routes. Mount them with `Router::nest`.
    pub fn routes<S: Clone + Send + Sync + 'static>(&self) -> Router<S> {
        routes::routes(Arc::clone(&self.shared))
    }

    /// Ends all streams, so that a graceful shutdown of the server need not wait for open pages.
    /// The task ends, and new streams are refused.
    pub fn end(&self) {
        self.shared.end();
    }
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page")
            .field("settings", &self.shared.settings)
            .finish_non_exhaustive()
    }
}
