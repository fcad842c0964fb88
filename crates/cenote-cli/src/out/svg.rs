//! Small pictures as SVG: text, bars, lines. The colours fit a light and a dark page.

use std::fmt::Write;

#[derive(Debug)]
pub(crate) struct Svg {
    text: String,
}

impl Svg {
    pub(crate) fn new(width: usize, height: usize) -> Self {
        let text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"system-ui, sans-serif\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
        );
        Self { text }
    }

    pub(crate) fn text(&mut self, x: f64, y: f64, size: u32, text: &str) {
        let text = escape(text);
        self.add(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" fill=\"#222\">{text}</text>\n"
        ));
    }

    pub(crate) fn bar(&mut self, x: f64, y: f64, width: f64, height: f64) {
        self.filled([x, y, width, height], "#2a7fb8");
    }

    /// A bar behind another one.
    pub(crate) fn faint_bar(&mut self, x: f64, y: f64, width: f64, height: f64) {
        self.filled([x, y, width, height], "#b9d8ea");
    }

    fn filled(&mut self, [x, y, width, height]: [f64; 4], colour: &str) {
        self.add(format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
             rx=\"2\" fill=\"{colour}\"/>\n"
        ));
    }

    pub(crate) fn end(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }

    fn add(&mut self, part: std::fmt::Arguments<'_>) {
        let written = self.text.write_fmt(part);
        written.expect("writing to a string does not fail");
    }
}

/// Replaces the letters that have a meaning in markup.
pub(crate) fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}
