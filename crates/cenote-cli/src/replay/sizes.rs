//! The sizes that a user asks for: `8`, `4..40`, `4,8,16`.

use crate::failure::{Failure, usage};

/// A long range is tried at this many sizes. More rows would say little more, and take longer.
const MOST: usize = 12;

/// The largest size that is tried.
const LARGEST: usize = 10_000;

/// Reads the sizes, in ascending order. Without a text, they are around the recorded size.
pub(super) fn parse(text: Option<&str>, recorded: usize) -> Result<Vec<usize>, Failure> {
    let sizes = match text {
        None => spread((recorded / 4).max(1), (recorded * 4).min(LARGEST), recorded),
        Some(text) => match text.split_once("..") {
            Some((first, last)) => range(text, first, last, recorded)?,
            None => {
                let all = text.split(',').map(|part| number(text, part));
                all.collect::<Result<_, _>>()?
            }
        },
    };
    let mut sizes = sizes;
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.len() > MOST * 4 {
        return Err(usage(format!(
            "`{text}` has {} sizes: name {} at most, or a range",
            sizes.len(),
            MOST * 4,
            text = text.unwrap_or_default(),
        )));
    }
    Ok(sizes)
}

fn range(text: &str, first: &str, last: &str, recorded: usize) -> Result<Vec<usize>, Failure> {
    let last = last.strip_prefix('=').unwrap_or(last);
    let (first, last) = (number(text, first)?, number(text, last)?);
    if first > last {
        return Err(usage(format!(
            "the range `{text}` is empty: write `{last}..{first}`"
        )));
    }
    Ok(spread(first, last, recorded))
}

fn number(text: &str, part: &str) -> Result<usize, Failure> {
    match part.trim().parse() {
        Ok(0) => Err(usage(format!(
            "`{text}` has the size 0: a pool has at least one resource"
        ))),
        Ok(size) if size <= LARGEST => Ok(size),
        Ok(_) => Err(usage(format!("`{text}` has a size above {LARGEST}"))),
        Err(_) => Err(usage(format!(
            "`{text}` is no size: write `8`, `4..40` or `4,8,16`"
        ))),
    }
}

/// Returns all sizes of a short range. Of a long one, a dozen that grow by the same factor, with
/// both ends and the recorded size.
fn spread(first: usize, last: usize, recorded: usize) -> Vec<usize> {
    if last - first < MOST {
        return (first..=last).collect();
    }
    let step = (last as f64 / first as f64).powf(1.0 / (MOST - 1) as f64);
    let size = |nth: usize| (first as f64 * step.powi(nth as i32)).round() as usize;
    let mut sizes: Vec<usize> = (0..MOST).map(size).collect();
    if (first..=last).contains(&recorded) {
        sizes.push(recorded);
    }
    sizes
}

#[cfg(test)]
mod tests;
