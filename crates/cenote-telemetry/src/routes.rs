//! The route `/metrics` for axum.

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;

use crate::prometheus::Prometheus;

impl Prometheus {
    /// Returns the route `/metrics`, to merge into the routes of a program.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use axum::Router;
    /// use axum::body::Body;
    /// use axum::http::Request;
    /// use cenote_telemetry::Prometheus;
    /// use tower::ServiceExt;
    ///
    /// let app: Router = Router::new().merge(Prometheus::default().routes());
    /// let response = app.oneshot(Request::get("/metrics").body(Body::empty())?).await?;
    /// assert_eq!(response.headers()["content-type"], Prometheus::CONTENT_TYPE);
    /// # Ok(()) }
    /// ```
    pub fn routes<S: Clone + Send + Sync + 'static>(self) -> Router<S> {
        let render = async move || ([(CONTENT_TYPE, Self::CONTENT_TYPE)], self.render());
        Router::new().route("/metrics", get(render))
    }
}
