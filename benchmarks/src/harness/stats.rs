//! The few statistics that the tables need.

#[cfg(test)]
mod tests;

/// Returns the middle value, or the mean of the two middle values. Returns `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    Some((sorted[middle - 1] + upper) / 2.0)
}

/// Returns the smallest value. Returns `None` without values.
pub fn minimum(values: &[f64]) -> Option<f64> {
    sorted(values).first().copied()
}

/// Returns the largest value. Returns `None` without values.
pub fn maximum(values: &[f64]) -> Option<f64> {
    sorted(values).last().copied()
}

/// Returns the smallest value for which at least this part of all values is not larger. Returns
/// `None` without values.
pub fn percentile(values: &[f64], part: f64) -> Option<f64> {
    let sorted = sorted(values);
    let rank = (part * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// How evenly tasks were served.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fairness {
    /// The trips of the task with most divided by those of the task with fewest. It is infinite if
    /// a task made none.
    pub max_to_min: f64,
    /// Tasks that made less than a tenth of an equal share.
    pub starved: usize,
}

impl Fairness {
    /// Computes it from the trips of each task.
    pub fn of(trips: &[usize]) -> Self {
        let max = trips.iter().copied().max().unwrap_or_default() as f64;
        let min = trips.iter().copied().min().unwrap_or_default() as f64;
        let share = trips.iter().sum::<usize>() as f64 / trips.len() as f64;
        let starved = |made: &&usize| (**made as f64) < share / 10.0;
        Self {
            max_to_min: if max == min { 1.0 } else { max / min },
            starved: trips.iter().filter(starved).count(),
        }
    }
}
