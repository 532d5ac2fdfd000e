//! How evenly amounts are shared: the Gini coefficient and Jain's index.

/// The Gini coefficient of some amounts; nothing where they sum to zero.
pub(crate) fn gini(amounts: &[f64]) -> Option<f64> {
    let mut sorted = amounts.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (n, sum) = (sorted.len() as f64, sorted.iter().sum::<f64>());
    if sum <= 0.0 {
        return None;
    }
    let ranked: f64 = sorted.iter().zip(1..).map(|(x, i)| x * f64::from(i)).sum();
    Some((2.0 * ranked / (n * sum) - (n + 1.0) / n).max(0.0))
}

/// Jain's index of some amounts; nothing where they sum to zero.
pub(crate) fn jain(amounts: &[f64]) -> Option<f64> {
    let (sum, squares) = amounts.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    (squares > 0.0).then(|| sum * sum / (amounts.len() as f64 * squares))
}

/// A coefficient for people; `none` where there is none.
pub(crate) fn coefficient(value: Option<f64>) -> String {
    value.map_or("none".into(), |value| format!("{value:.3}"))
}
