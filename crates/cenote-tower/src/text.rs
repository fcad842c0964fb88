//! Bodies that this crate writes itself, and the body that is either such a one or that of the service inside.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

/// A short text as a body.
#[derive(Clone, Debug, Default)]
pub struct Text(Bytes);

impl Text {
    /// What is still to be read of it.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("bug: it is made of a string, and read at once")
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
    /// The body of the service inside, or the text of a layer that answered in its place.
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

/// `text` as JSON has it, with its quotes.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => {
                write!(quoted, "\\u{:04x}", u32::from(letter)).expect("a string takes any text");
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
    fn a_text_in_json_cannot_break_out_of_its_quotes() {
        assert_eq!(quoted("a \"b\" \\ \n ü"), r#""a \"b\" \\ \u000a ü""#);
    }
}
