//! The universal scalability law (Gunther 1993): how throughput depends on concurrency.
//!
//! `X(n) = λ n / (1 + σ (n - 1) + κ n (n - 1))`: λ is the throughput of one, σ the part of the work
//! that is done one after the other, and κ the cost of keeping each pair in agreement. With κ there
//! is a size beyond which throughput falls.
//!
//! The fit is linear in `n / X(n)`, and weighs relative errors alike.

use serde::Serialize;

use super::sweep::Point;

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Usl {
    pub(crate) lambda: f64,
    pub(crate) sigma: f64,
    pub(crate) kappa: f64,
    /// How much of the spread of the throughput the law explains, at most 1.
    pub(crate) r_squared: f64,
}

impl Usl {
    /// Fits the law by least squares. `None`: there are fewer than three sizes.
    pub(crate) fn fit(points: &[Point]) -> Option<Self> {
        if points.len() < 3 || points.iter().any(|point| point.per_second <= 0.0) {
            return None;
        }
        // Both costs are at least zero. A cost that comes out lower is left out.
        let tries = [[true, true], [true, false], [false, true], [false, false]];
        let fits = tries.iter().filter_map(|with| solve(points, *with));
        let allowed = fits.filter(|fit| fit.sigma >= 0.0 && fit.kappa >= 0.0 && fit.lambda > 0.0);
        allowed.max_by(|one, other| one.r_squared.total_cmp(&other.r_squared))
    }

    pub(super) fn predict(&self, size: usize) -> f64 {
        self.lambda * size as f64 / self.slowdown(size)
    }

    /// Returns how many times longer an operation takes among this many than alone.
    pub(crate) fn slowdown(&self, size: usize) -> f64 {
        let n = size as f64;
        1.0 + self.sigma * (n - 1.0) + self.kappa * n * (n - 1.0)
    }

    /// Returns the size with the highest throughput, if there is one.
    pub(super) fn peak(&self) -> Option<f64> {
        (self.kappa > 0.0).then(|| ((1.0 - self.sigma).max(0.0) / self.kappa).sqrt().max(1.0))
    }
}

/// Solves the normal equations of `n / X = a + b (n - 1) + c n (n - 1)`, where `with` says whether
/// `b` and `c` are part of it.
fn solve(points: &[Point], with: [bool; 2]) -> Option<Usl> {
    let mut matrix = [[0.0; 4]; 3];
    for point in points {
        let (n, x) = (point.size as f64, point.per_second);
        let row = [
            1.0,
            if with[0] { n - 1.0 } else { 0.0 },
            if with[1] { n * (n - 1.0) } else { 0.0 },
        ];
        let weight = (x / n).powi(2);
        for (line, left) in matrix.iter_mut().zip(row) {
            for (cell, right) in line.iter_mut().zip([row[0], row[1], row[2], n / x]) {
                *cell += weight * left * right;
            }
        }
    }
    // A term that is left out has the solution zero.
    for (nth, &is_in) in with.iter().enumerate() {
        if !is_in {
            matrix[nth + 1] = [0.0; 4];
            matrix[nth + 1][nth + 1] = 1.0;
        }
    }
    let [a, b, c] = eliminate(matrix)?;
    let mut law = Usl {
        lambda: 1.0 / a,
        sigma: b / a,
        kappa: c / a,
        r_squared: 0.0,
    };
    law.r_squared = r_squared(&law, points);
    Some(law)
}

/// Gauss's elimination with the largest pivot.
fn eliminate(mut matrix: [[f64; 4]; 3]) -> Option<[f64; 3]> {
    for column in 0..3 {
        let rows = column..3;
        let pivot = rows.max_by(|&one, &other| {
            matrix[one][column]
                .abs()
                .total_cmp(&matrix[other][column].abs())
        })?;
        matrix.swap(column, pivot);
        let top = matrix[column];
        if top[column].abs() < 1e-12 {
            return None;
        }
        for (nth, row) in matrix.iter_mut().enumerate() {
            if nth != column {
                let factor = row[column] / top[column];
                for (cell, above) in row.iter_mut().zip(top) {
                    *cell -= factor * above;
                }
            }
        }
    }
    Some([0, 1, 2].map(|nth| matrix[nth][3] / matrix[nth][nth]))
}

fn r_squared(law: &Usl, points: &[Point]) -> f64 {
    let mean = points.iter().map(|it| it.per_second).sum::<f64>() / points.len() as f64;
    let spread: f64 = points.iter().map(|it| (it.per_second - mean).powi(2)).sum();
    let missed: f64 = points
        .iter()
        .map(|it| (it.per_second - law.predict(it.size)).powi(2))
        .sum();
    1.0 - missed / spread.max(1e-12)
}

#[cfg(test)]
mod tests;
