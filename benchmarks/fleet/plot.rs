//! The plot: the requests per second that each process had done, over time, as SVG. Each system has
//! a panel, and all panels have the same axes.

use std::fmt::Write;

use crate::figures::{Figures, POINT};
use crate::play::{PLAN, What};
use crate::results::Results;

const LEFT: f64 = 200.0;
const WIDTH: f64 = 720.0;
const TOP: f64 = 96.0;
const PANEL: f64 = 64.0;
const GAP: f64 = 18.0;

/// One for each process.
const COLOURS: [&str; 6] = [
    "#0b7285", "#e8590c", "#2b8a3e", "#9c36b5", "#c92a2a", "#846358",
];

/// Draws all systems of a run.
pub(crate) fn svg(results: &Results) -> String {
    let all = results.systems.iter().flat_map(|system| &system.done);
    let highest = all.flatten().copied().fold(results.rate, f64::max);
    let (width, height) = (
        LEFT + WIDTH + 20.0,
        TOP + (PANEL + GAP) * results.systems.len() as f64 + 10.0,
    );
    let mut svg = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        svg,
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="system-ui, sans-serif" font-size="12">
<rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>
<text x="16" y="24" font-size="15" font-weight="600" fill="#212529">Requests per second that each of six processes had done</text>
<text x="16" y="42" font-size="11" fill="#868e96">{}, {}</text>
<text x="16" y="60" font-size="11" fill="#868e96">dashed: the load of the busy process, {} requests per second</text>"##,
        results.date, results.machine, results.rate
    );
    for (row, system) in results.systems.iter().enumerate() {
        let bottom = TOP + PANEL + (PANEL + GAP) * row as f64;
        let seconds = results.stretch_seconds * PLAN.len() as f64;
        let axes = Axes {
            bottom,
            x: WIDTH / seconds,
            y: PANEL / highest,
        };
        if row == 0 {
            name_stretches(&mut svg, system, &axes);
        }
        draw(&mut svg, system, &axes, results.rate);
    }
    svg.push_str("</svg>\n");
    svg
}

/// Where a panel is, and how many units of the picture a second and a request per second have.
struct Axes {
    bottom: f64,
    x: f64,
    y: f64,
}

impl Axes {
    fn at(&self, seconds: f64, rate: f64) -> (f64, f64) {
        (LEFT + self.x * seconds, self.bottom - self.y * rate)
    }
}

fn name_stretches(svg: &mut String, system: &Figures, axes: &Axes) {
    for ((what, busy, _), begins) in PLAN.iter().zip(&system.stretches) {
        let text = match what {
            What::Busy => format!("{} is busy", busy + 1),
            What::Full => "wants all".to_owned(),
            What::Move => format!("move to {}", busy + 1),
            What::Kill => format!("kill -9, to {}", busy + 1),
        };
        let (x, _) = axes.at(*begins, 0.0);
        let y = TOP - 8.0;
        let _ = writeln!(
            svg,
            r##"<text x="{:.1}" y="{y}" fill="#495057">{text}</text>"##,
            x + 3.0
        );
    }
}

fn draw(svg: &mut String, system: &Figures, axes: &Axes, rate: f64) {
    let (left, bottom, name) = (LEFT - 10.0, axes.bottom, &system.system);
    let weight = if name.contains("cenote") { 700 } else { 400 };
    let middle = bottom - PANEL / 2.0 + 4.0;
    let (_, dashed) = axes.at(0.0, rate);
    let (right, top) = (LEFT + WIDTH, bottom - PANEL);
    let _ = writeln!(
        svg,
        r##"<text x="{left}" y="{middle}" text-anchor="end" font-weight="{weight}" fill="#212529">{name}</text>
<path d="M{LEFT} {bottom}H{right}" stroke="#868e96"/>
<path d="M{LEFT} {dashed:.1}H{right}" stroke="#adb5bd" stroke-dasharray="4 4"/>"##
    );
    for begins in &system.stretches {
        let (x, _) = axes.at(*begins, 0.0);
        let _ = writeln!(
            svg,
            r##"<path d="M{x:.1} {top}V{bottom}" stroke="#dee2e6"/>"##
        );
    }
    for (done, colour) in system.done.iter().zip(COLOURS) {
        let points = done.iter().enumerate().map(|(point, rate)| {
            let (x, y) = axes.at((point as f64 + 0.5) * POINT, *rate);
            format!("{x:.1},{y:.1}")
        });
        let points: Vec<String> = points.collect();
        let _ = writeln!(
            svg,
            r##"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="1.5"/>"##,
            points.join(" ")
        );
    }
}
