//! A chart over time as SVG text: areas and lines that change in steps, bands and labels.

use std::fmt::Write;

const WIDTH: f64 = 720.0;
/// Room for the numbers on the left.
const LEFT: f64 = 44.0;
const RIGHT: f64 = 12.0;
pub(crate) const GREY: &str = "#6b7280";

/// A chart of some seconds, made of panels that are drawn below each other.
pub(crate) struct Chart {
    seconds: f64,
    bottom: f64,
    body: String,
}

/// A part of the chart with a scale of its own.
pub(crate) struct Panel {
    top: f64,
    height: f64,
    most: f64,
}

/// A value over time: it stays the same until the next point.
pub(crate) type Steps = Vec<(f64, f64)>;

impl Chart {
    pub(crate) fn new(seconds: f64) -> Self {
        let (bottom, body) = (8.0, String::new());
        Self {
            seconds,
            bottom,
            body,
        }
    }

    /// Adds a panel with a title, whose scale ends at `most`.
    pub(crate) fn panel(&mut self, title: &str, height: f64, most: f64) -> Panel {
        let panel = self.room(title, height, most);
        for value in [0.0, most] {
            let y = panel.y(value);
            self.line((LEFT, y), (WIDTH - RIGHT, y), "#d1d5db");
            self.text(LEFT - 6.0, y + 4.0, "end", GREY, &format!("{value}"));
        }
        panel
    }

    /// Adds a low panel without a scale, for bands.
    pub(crate) fn strip(&mut self, title: &str) -> Panel {
        self.room(title, 20.0, 1.0)
    }

    fn room(&mut self, title: &str, height: f64, most: f64) -> Panel {
        self.text(LEFT, self.bottom + 14.0, "start", "#111827", title);
        let top = self.bottom + 24.0;
        self.bottom = top + height + 10.0;
        Panel { top, height, most }
    }

    /// Fills what is between zero and the steps.
    pub(crate) fn area(&mut self, panel: &Panel, steps: &Steps, colour: &str) {
        let floor = panel.y(0.0);
        let path = self.path(panel, steps);
        let (first, last) = (self.x(steps[0].0), self.x(self.seconds));
        let _ = writeln!(
            self.body,
            r#"<path fill="{colour}" d="M{first:.1} {floor:.1}L{path}L{last:.1} {floor:.1}Z"/>"#
        );
    }

    pub(crate) fn curve(&mut self, panel: &Panel, steps: &Steps, colour: &str) {
        let path = self.path(panel, steps);
        let _ = writeln!(
            self.body,
            r#"<path fill="none" stroke="{colour}" stroke-width="1.5" d="M{path}"/>"#
        );
    }

    /// Fills a span of time in a panel.
    pub(crate) fn band(&mut self, panel: &Panel, (from, to): (f64, f64), colour: &str) {
        let (x, width) = (self.x(from), self.x(to) - self.x(from));
        let (y, height) = (panel.top, panel.height);
        let _ = writeln!(
            self.body,
            r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" fill="{colour}"/>"#
        );
    }

    /// Explains the colours, from left to right at the end of the last panel's title.
    pub(crate) fn legend(&mut self, panel: &Panel, entries: &[(&str, &str)]) {
        let mut x = WIDTH - RIGHT - 110.0 * entries.len() as f64;
        for (name, colour) in entries {
            let y = panel.top - 20.0;
            let _ = writeln!(
                self.body,
                r#"<rect x="{x:.1}" y="{y:.1}" width="11" height="11" fill="{colour}"/>"#
            );
            self.text(x + 16.0, y + 10.0, "start", GREY, name);
            x += 110.0;
        }
    }

    /// The whole picture, with the seconds below.
    pub(crate) fn finish(mut self) -> String {
        for second in 0..=self.seconds as u32 {
            let (x, y) = (self.x(f64::from(second)), self.bottom + 6.0);
            self.text(x, y, "middle", GREY, &format!("{second} s"));
        }
        page(WIDTH, self.bottom + 18.0, &self.body)
    }

    fn x(&self, second: f64) -> f64 {
        LEFT + second / self.seconds * (WIDTH - LEFT - RIGHT)
    }

    fn path(&self, panel: &Panel, steps: &Steps) -> String {
        let mut path = String::new();
        let mut last = f64::NAN;
        for (second, value) in steps.iter().filter(|step| step.0 <= self.seconds) {
            if *value != last {
                let (x, y) = (self.x(*second), panel.y(*value));
                let start = if path.is_empty() { "" } else { "H" };
                let sep = if path.is_empty() { " " } else { "V" };
                let _ = write!(path, "{start}{x:.1}{sep}{y:.1}");
                last = *value;
            }
        }
        let _ = write!(path, "H{:.1}", self.x(self.seconds));
        path
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = writeln!(
            self.body,
            r#"<path stroke="{colour}" d="M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}"/>"#
        );
    }

    fn text(&mut self, x: f64, y: f64, anchor: &str, colour: &str, text: &str) {
        let _ = writeln!(self.body, "{}", label((x, y), anchor, colour, text));
    }
}

impl Panel {
    fn y(&self, value: f64) -> f64 {
        self.top + self.height * (1.0 - value.min(self.most) / self.most)
    }
}

pub(crate) fn label((x, y): (f64, f64), anchor: &str, colour: &str, text: &str) -> String {
    format!(r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" fill="{colour}">{text}</text>"#)
}

/// A picture on a white ground, so that it can be read on a dark page, too.
pub(crate) fn page(width: f64, height: f64, body: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         width=\"{width:.0}\" height=\"{height:.0}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{body}</svg>\n"
    )
}
