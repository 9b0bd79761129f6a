//! The order in which subjects run: A B C A B C .., so that a machine that slows down for a while slows all of them.

/// Runs each subject `rounds` times, interleaved. The results are by subject, in the order of its rounds.
pub(crate) fn interleaved<S: Copy, R>(subjects: &[S], rounds: u32, mut run: impl FnMut(S) -> R) -> Vec<(S, Vec<R>)> {
    let mut results: Vec<(S, Vec<R>)> = subjects.iter().map(|&subject| (subject, Vec::new())).collect();
    for _ in 0..rounds {
        for (subject, rounds) in &mut results {
            rounds.push(run(*subject));
        }
    }
    results
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_take_turns() {
        // Catches all rounds of one subject in a row: a slow minute would fall on one subject only.
        let mut order = String::new();
        let results = interleaved(&['A', 'B', 'C'], 2, |subject| {
            order.push(subject);
            order.len()
        });
        assert_eq!(order, "ABCABC");
        assert_eq!(results, [('A', vec![1, 4]), ('B', vec![2, 5]), ('C', vec![3, 6])]);
    }
}
