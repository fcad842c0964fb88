//! The states of a slot and the edges between them, drawn from the list in the code.

use std::fmt::Write;

use crate::chart::{label, page};
use crate::names::{between, read};

/// Where each state is drawn, and its colour. Edges have the colour of the state that they leave.
const PLACES: &[(&str, (f64, f64), &str)] = &[
    ("Vacant", (80.0, 190.0), "#6b7280"),
    ("Opening", (230.0, 60.0), "#f59e0b"),
    ("Checking", (420.0, 45.0), "#7c3aed"),
    ("Idle", (400.0, 190.0), "#16a34a"),
    ("Leased", (620.0, 130.0), "#2563eb"),
    ("OnTray", (640.0, 290.0), "#0891b2"),
    ("Cleaning", (450.0, 325.0), "#be185d"),
    ("Closing", (220.0, 320.0), "#dc2626"),
];

/// The usual life of a resource, which is drawn thick.
const USUAL: &[(&str, &str)] = &[
    ("Vacant", "Opening"),
    ("Opening", "Leased"),
    ("Leased", "Idle"),
    ("Idle", "Leased"),
    ("Idle", "Closing"),
    ("Closing", "Vacant"),
];

const HALF: (f64, f64) = (42.0, 16.0);

/// Reads `(From, To | To)` pairs from the function that allows every edge.
pub(crate) fn edges() -> Vec<(String, String)> {
    let code = read("crates/cenote/src/ledger/slot.rs");
    let body = between(&code, "fn may_become", "\n    }\n");
    let (_, list) = body.split_once("(self, next),").expect("the list of edges");
    let mut edges = Vec::new();
    for pair in list.split('(').skip(1) {
        let pair = pair.split(')').next().unwrap_or_default();
        let (from, to) = pair.split_once(',').expect("a pair of states");
        for to in to
            .split([',', '|'])
            .map(str::trim)
            .filter(|to| !to.is_empty())
        {
            edges.push((from.trim().to_owned(), to.to_owned()));
        }
    }
    edges
}

pub(crate) fn draw(edges: &[(String, String)]) -> String {
    let mut body = String::new();
    for (_, _, colour) in PLACES {
        let id = colour.trim_start_matches('#');
        let _ = writeln!(
            body,
            r#"<marker id="m{id}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8Z" fill="{colour}"/></marker>"#
        );
    }
    for (from, to) in edges {
        let (start, colour) = place(from);
        let (end, _) = place(to);
        let is_usual = USUAL.contains(&(from.as_str(), to.as_str()));
        let width = if is_usual { 2.8 } else { 1.1 };
        let curve = if from == to {
            around(start)
        } else {
            arc(start, end)
        };
        let id = colour.trim_start_matches('#');
        let _ = writeln!(
            body,
            r#"<path d="{curve}" fill="none" stroke="{colour}" stroke-width="{width}" marker-end="url(#m{id})"/>"#
        );
    }
    for (name, (x, y), colour) in PLACES {
        let (left, top) = (x - HALF.0, y - HALF.1);
        let (width, height) = (HALF.0 * 2.0, HALF.1 * 2.0);
        let _ = writeln!(
            body,
            r#"<rect x="{left}" y="{top}" width="{width}" height="{height}" rx="7" fill="{colour}"/>"#
        );
        let _ = writeln!(body, "{}", label((*x, y + 4.0), "middle", "#ffffff", name));
    }
    let note =
        "thick: the usual life of a resource; an arrow has the colour of the state it leaves";
    let _ = writeln!(body, "{}", label((360.0, 372.0), "middle", "#6b7280", note));
    page(720.0, 384.0, &body)
}

fn place(state: &str) -> ((f64, f64), &'static str) {
    let found = PLACES.iter().find(|(name, ..)| *name == state);
    let (_, at, colour) = found.unwrap_or_else(|| panic!("`{state}` has no place"));
    (*at, colour)
}

/// A curve that leaves a straight line to its left, so that two opposite edges do not meet.
fn arc(from: (f64, f64), to: (f64, f64)) -> String {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let bend = 0.12;
    let middle = ((from.0 + to.0) / 2.0, (from.1 + to.1) / 2.0);
    let control = (middle.0 + dy * bend, middle.1 - dx * bend);
    let (start, end) = (border(from, control), border(to, control));
    format!(
        "M{:.1} {:.1}Q{:.1} {:.1} {:.1} {:.1}",
        start.0, start.1, control.0, control.1, end.0, end.1
    )
}

/// A loop at the right side of a state.
fn around((x, y): (f64, f64)) -> String {
    let (side, far) = (x + HALF.0, x + HALF.0 + 44.0);
    let [high, up, low, down] = [y - 8.0, y - 30.0, y + 8.0, y + 30.0];
    format!("M{side:.1} {high:.1}C{far:.1} {up:.1} {far:.1} {down:.1} {side:.1} {low:.1}")
}

/// Where the line from the middle of a box towards a point leaves the box.
fn border(middle: (f64, f64), towards: (f64, f64)) -> (f64, f64) {
    let (dx, dy) = (towards.0 - middle.0, towards.1 - middle.1);
    let to_side = (HALF.0 + 3.0) / dx.abs().max(0.001);
    let to_top = (HALF.1 + 3.0) / dy.abs().max(0.001);
    let part = to_side.min(to_top);
    (middle.0 + dx * part, middle.1 + dy * part)
}
