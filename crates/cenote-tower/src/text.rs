//! Bodies: a text of this crate, and either that or the body of the inner service.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

/// A text as a body.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote_tower::Text;
/// use http_body_util::BodyExt;
///
/// let text = Text::from(String::from("hello"));
/// assert_eq!(text.as_str(), "hello");
/// assert_eq!(text.collect().await?.to_bytes(), "hello");
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Text(Bytes);

impl Text {
    /// Returns the text. It is empty after the body was read.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0)
            .expect("bug: the body is made from a string and read in one piece")
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl Body for Text {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let text = std::mem::take(&mut self.0);
        Poll::Ready((!text.is_empty()).then(|| Ok(Frame::data(text))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.len() as u64)
    }
}

pin_project! {
    /// The body of the inner service, or the text of a layer that responded in its place.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote_tower::{AnswerBody, Problem, ProblemLayer, Text};
    /// use http::{Request, Response, StatusCode};
    /// use http_body_util::BodyExt;
    /// use tower::{Layer, ServiceExt, service_fn};
    ///
    /// let service = ProblemLayer::new().layer(service_fn(async |_: Request<()>| {
    ///     Err::<Response<Text>, _>(Problem::new(StatusCode::GONE, "sold out"))
    /// }));
    /// let body: AnswerBody<Text> = service.oneshot(Request::new(())).await?.into_body();
    /// assert!(body.collect().await?.to_bytes().ends_with(br#""detail":"sold out"}"#));
    /// # Ok(()) }
    /// ```
    #[derive(Debug)]
    pub struct AnswerBody<B> {
        #[pin]
        inner: Option<B>,
        own: Text,
    }
}

impl<B> AnswerBody<B> {
    pub(crate) fn inner(body: B) -> Self {
        Self {
            inner: Some(body),
            own: Text::default(),
        }
    }

    pub(crate) fn own(text: Text) -> Self {
        Self {
            inner: None,
            own: text,
        }
    }
}

impl<B: Body<Data = Bytes>> Body for AnswerBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.project();
        match this.inner.as_pin_mut() {
            Some(body) => body.poll_frame(context),
            None => Pin::new(this.own)
                .poll_frame(context)
                .map_err(|never| match never {}),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.inner {
            Some(body) => body.is_end_stream(),
            None => self.own.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Some(body) => body.size_hint(),
            None => self.own.size_hint(),
        }
    }
}

/// Returns `text` as a JSON string, with its quotes.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => {
                write!(quoted, "\\u{:04x}", u32::from(letter))
                    .expect("writing to a string never fails");
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_text_has_no_bare_quotes_or_control_characters() {
        assert_eq!(quoted("a \"b\" \\ \n ü"), r#""a \"b\" \\ \u000a ü""#);
    }
}
