//! The report to keep: an SVG, alone or in a page of HTML.

use std::path::Path;

use super::buckets::buckets;
use super::figures::Figures;
use super::report::Report;
use crate::failure::{Failure, usage};
use crate::out::short_time;
use crate::out::svg::{Svg, escape};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Svg,
    Html,
}

/// Returns the format that the name of a file asks for.
pub(crate) fn format(file: &Path) -> Result<Format, Failure> {
    let ending = file.extension().map(|ending| ending.to_ascii_lowercase());
    match ending.as_ref().and_then(|ending| ending.to_str()) {
        Some("svg") => Ok(Format::Svg),
        Some("html" | "htm") => Ok(Format::Html),
        _ => {
            let file = file.display();
            Err(usage(format!("`{file}` must end in `.svg` or `.html`")))
        }
    }
}

pub(super) fn draw(report: &Report, figures: &Figures, format: Format) -> String {
    let svg = picture(report, figures);
    match format {
        Format::Svg => svg,
        Format::Html => {
            let row = |(name, value): (&str, String)| {
                format!("<tr><th>{name}</th><td>{}</td></tr>\n", escape(&value))
            };
            page(
                &report.title(),
                &svg,
                &report.rows().into_iter().map(row).collect::<String>(),
            )
        }
    }
}

/// Returns a page with a picture and the rows of a table.
pub(crate) fn page(title: &str, svg: &str, rows: &str) -> String {
    let title = escape(title);
    format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\n\
         <style>body{{font:16px system-ui;margin:2rem auto;max-width:60rem;padding:0 1rem}}\
         th{{text-align:left;font-weight:normal;padding-right:2rem}}td{{text-align:right}}\
         svg{{max-width:100%;height:auto}}</style>\n\
         <h1>{title}</h1>\n{svg}\n<table>\n{rows}</table>\n</html>\n"
    )
}

fn picture(report: &Report, figures: &Figures) -> String {
    let buckets = buckets(&figures.times);
    let height = 70 + 26 * buckets.len();
    let most = buckets.iter().map(|bucket| bucket.part).fold(0.0, f64::max);
    let mut svg = Svg::new(760, height);
    svg.text(20.0, 28.0, 16, &report.title());
    let line = format!(
        "{:.0} per second, p50 {:.2} ms, p99 {:.2} ms",
        report.per_second, report.latency_ms[0].1, report.latency_ms[3].1
    );
    svg.text(20.0, 50.0, 13, &line);
    for (nth, bucket) in buckets.iter().enumerate() {
        let y = 64.0 + 26.0 * nth as f64;
        svg.text(
            20.0,
            y + 15.0,
            13,
            &format!("≤ {}", short_time(bucket.up_to)),
        );
        let width = bucket.part / most.max(1e-9) * 520.0;
        svg.bar(110.0, y, width, 18.0);
        svg.text(
            118.0 + width,
            y + 15.0,
            13,
            &format!("{:.2} %", bucket.part * 100.0),
        );
    }
    svg.end()
}
