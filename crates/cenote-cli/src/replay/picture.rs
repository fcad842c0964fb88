//! The report to keep: an SVG, alone or in a page of HTML.

use super::report::{Report, TITLES, band};
use crate::bench::{Format, page};
use crate::out::svg::{Svg, escape};

pub(super) fn draw(report: &Report, format: Format) -> String {
    let svg = picture(report);
    match format {
        Format::Svg => svg,
        Format::Html => page(&report.title(), &svg, &rows(report)),
    }
}

fn rows(report: &Report) -> String {
    let row = |[first, others @ ..]: &[String; 9]| {
        let cell = |cell: &String| format!("<td>{}</td>", escape(cell));
        let others: String = others.iter().map(cell).collect();
        format!("<tr><th>{}</th>{others}</tr>\n", escape(first))
    };
    let titles = TITLES.map(|title| title.trim_start_matches('>').to_owned());
    let mut text = row(&titles);
    for cells in report.table() {
        text += &row(&cells);
    }
    for line in report.lines() {
        let width = TITLES.len();
        text += &format!("<tr><th colspan=\"{width}\">{}</th></tr>\n", escape(&line));
    }
    text
}

/// The longest bar, in pixels.
const WIDEST: f64 = 480.0;

fn picture(report: &Report) -> String {
    let most = report.longest().max(1e-9);
    let mut svg = Svg::new(760, 76 + 26 * report.sizes.len());
    svg.text(20.0, 28.0, 16, &report.title());
    let firm = report.firm_up_to;
    let line = format!("wait p99 by max_size: firm up to {firm}, a band from best to worst above");
    svg.text(20.0, 50.0, 13, &line);
    for (nth, size) in report.sizes.iter().enumerate() {
        let y = 64.0 + 26.0 * nth as f64;
        svg.text(20.0, y + 15.0, 13, &size.max_size.to_string());
        let best = size.best.wait_ms.p99;
        let worst = size.worst.map_or(best, |row| row.wait_ms.p99).max(best);
        let [full, whole] = [best, worst].map(|millis| millis / most * WIDEST);
        svg.faint_bar(80.0, y, whole, 18.0);
        svg.bar(80.0, y, full, 18.0);
        svg.text(88.0 + whole, y + 15.0, 13, &band(best, worst));
    }
    svg.end()
}
