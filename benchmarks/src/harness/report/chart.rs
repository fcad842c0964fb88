//! The chart: a bar for each pool in S1, S2b and S3, as SVG.

use std::fmt::Write;

use crate::harness::report::table::cell;
use crate::harness::results::Line;

/// Heading, scenario, runtime.
const PANELS: [(&str, &str, &str); 3] = [
    ("S1: one task", "S1", "current-thread"),
    ("S2b: two workers hammer it", "S2b", "2 workers"),
    ("S3: 64 tasks on 8", "S3", "2 workers"),
];

const NAMES: f64 = 165.0;
const PANEL: f64 = 235.0;
/// The length of the longest bar. The rest of the panel is for its number.
const BAR: f64 = 175.0;
const ROW: f64 = 22.0;
const TOP: f64 = 74.0;

/// Draws nanoseconds per trip. Shorter bars are better.
pub fn svg(lines: &[Line], caption: &str) -> String {
    let mut pools: Vec<&str> = Vec::new();
    for line in lines {
        if PANELS.iter().any(|panel| panel.1 == line.scenario) && !pools.contains(&line.pool) {
            pools.push(line.pool);
        }
    }
    let (width, height) = (NAMES + 3.0 * PANEL, TOP + ROW * pools.len() as f64 + 16.0);
    let mut svg = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        svg,
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="system-ui, sans-serif" font-size="12">
<rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>
<text x="16" y="24" font-size="15" font-weight="600" fill="#212529">Nanoseconds per acquire and return, shorter is better</text>
<text x="16" y="42" font-size="11" fill="#868e96">{}</text>"##,
        escape(caption)
    );
    for (row, pool) in pools.iter().enumerate() {
        let y = TOP + ROW * row as f64 + 15.0;
        let weight = if *pool == "cenote" { 700 } else { 400 };
        let name = escape(pool.trim_start_matches("floor: "));
        let _ = writeln!(
            svg,
            r##"<text x="{}" y="{y}" text-anchor="end" font-weight="{weight}" fill="#212529">{name}</text>"##,
            NAMES - 10.0
        );
    }
    for (index, panel) in PANELS.iter().enumerate() {
        draw(&mut svg, lines, &pools, panel, NAMES + PANEL * index as f64);
    }
    svg.push_str("</svg>\n");
    svg
}

fn draw(svg: &mut String, lines: &[Line], pools: &[&str], panel: &(&str, &str, &str), x: f64) {
    let (heading, scenario, runtime) = *panel;
    let of = |pool: &str| {
        let mut lines = lines.iter();
        lines.find(|line| line.scenario == scenario && line.runtime == runtime && line.pool == pool)
    };
    let nanos = |pool: &str| of(pool).and_then(|line| line.figure("ns"));
    let longest = pools
        .iter()
        .filter_map(|pool| nanos(pool))
        .fold(1.0, f64::max);
    let _ = writeln!(
        svg,
        r##"<text x="{x}" y="{}" font-weight="600" fill="#495057">{heading}</text>"##,
        TOP - 6.0
    );
    for (row, pool) in pools.iter().enumerate() {
        let y = TOP + ROW * row as f64;
        let (length, label) = match (of(pool), nanos(pool)) {
            (_, Some(nanos)) => (BAR * nanos / longest, cell(Some(nanos))),
            (Some(line), None) => (
                0.0,
                line.outcome
                    .as_ref()
                    .err()
                    .map_or(String::new(), ToString::to_string),
            ),
            (None, None) => (0.0, String::new()),
        };
        let colour = match *pool {
            "cenote" => "#0b7285",
            pool if pool.starts_with("floor: ") => "#ced4da",
            _ => "#868e96",
        };
        let _ = writeln!(
            svg,
            r##"<rect x="{x}" y="{}" width="{length:.1}" height="14" rx="2" fill="{colour}"/><text x="{:.1}" y="{}" fill="#495057">{}</text>"##,
            y + 4.0,
            x + length + 5.0,
            y + 15.0,
            escape(&label)
        );
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
