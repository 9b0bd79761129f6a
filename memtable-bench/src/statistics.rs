//! What is said of a workload's rounds: the median, and how far they lie apart. One slow round moves no median.

use serde::{Deserialize, Serialize};

/// The middle and the ends of some measurements.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// `None` without measurements. The median of an even number is the mean of the two in the middle.
    pub(crate) fn of(measurements: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = measurements.into_iter().collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let (below, above) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Some(Self { median: below.midpoint(above), min, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_in_any_order() {
        // Catches a median of unsorted rounds, and one that an outlier moves.
        assert_eq!(Spread::of([9.0, 1.0, 1000.0, 3.0, 2.0]), Some(Spread { median: 3.0, min: 1.0, max: 1000.0 }));
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        // Catches the upper or lower one taken instead.
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 10.0]), Some(Spread { median: 3.0, min: 1.0, max: 10.0 }));
    }

    #[test]
    fn one_measurement_is_its_own_median_and_none_has_none() {
        // Catches an index past the end where rounds failed.
        assert_eq!(Spread::of([7.5]), Some(Spread { median: 7.5, min: 7.5, max: 7.5 }));
        assert_eq!(Spread::of([]), None);
    }
}
