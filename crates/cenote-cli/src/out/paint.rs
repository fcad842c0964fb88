//! Colours, on a terminal only.

use std::env;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    Red,
    Yellow,
    Green,
    Blue,
    Bold,
}

/// Adds colours to text, or leaves it as it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    /// `NO_COLOR` and `TERM=dumb` switch colours off.
    pub(crate) fn for_stream(is_terminal: bool) -> Self {
        let refused = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = env::var_os("TERM").is_some_and(|value| value == "dumb");
        Self {
            on: is_terminal && !refused && !dumb,
        }
    }

    pub(crate) fn say(self, colour: Colour, text: &str) -> String {
        if !self.on {
            return text.to_owned();
        }
        let code = match colour {
            Colour::Red => "31;1",
            Colour::Yellow => "33;1",
            Colour::Green => "32",
            Colour::Blue => "34;1",
            Colour::Bold => "1",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}
