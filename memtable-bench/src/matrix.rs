//! Which cells are measured: matrices on the command line, or in a file of `presets`. Each combination of a matrix's values is a cell.

use clap::{Args, ValueEnum};
use itertools::iproduct;
use serde::{Deserialize, Serialize};

use crate::machine::memory_available;
use crate::spec::{Access, KEY_LEN, KeySet, SHORTEST_KEY, Shape, Store, Subject, VALUE_LEN, Workload, name};

/// Sets of cells with a name, so that one word repeats a result.
const PRESETS: [(&str, &str); 8] = [
    ("tables", include_str!("../presets/tables.json")),
    ("published", include_str!("../presets/published.json")),
    ("curves", include_str!("../presets/curves.json")),
    ("engines", include_str!("../presets/engines.json")),
    ("peers", include_str!("../presets/peers.json")),
    ("transactions", include_str!("../presets/transactions.json")),
    ("own-tables", include_str!("../presets/own-tables.json")),
    ("own-engine", include_str!("../presets/own-engine.json")),
];
/// Without arguments: the numbers of entries of a table and of a database.
const ENTRIES: [usize; 2] = [3_000_000, 600_000];
/// The most threads: more than machines have processors. Each thread needs a stack.
const MOST_THREADS: usize = 1024;
/// The shortest value that can differ for each record.
const SHORTEST_VALUE: usize = 8;
/// The most entries for skl, whose inserts take O(n): to fill a table of 100,000 takes minutes, one of 3 M days.
const MOST_OF_SKL: usize = 20_000;

/// The values of which every combination is measured. An empty list stands for the default, and for all subjects or workloads.
#[derive(Debug, Clone, Default, PartialEq, Args, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Matrix {
    /// Where records are stored, and the memory that engines get [default: table]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAME")]
    store: Vec<Store>,
    /// What to do with the tables or databases [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAME")]
    pub(crate) workloads: Vec<Workload>,
    /// What to measure [default: all that this build has]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAME")]
    pub(crate) subjects: Vec<Subject>,
    /// How keys look, and in which order they are stored [default: random]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAME")]
    keys: Vec<KeySet>,
    /// How often each key is read: by get, get-many, seeks and mixed workloads [default: uniform]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAME")]
    access: Vec<Access>,
    /// Keys to store; 100K and 3M are numbers [default: 3M in tables, 600K in databases]
    #[arg(long, value_parser = parse_count, value_delimiter = ',', value_name = "N")]
    entries: Vec<usize>,
    /// Threads that work at once: each scans everything, and does its share of the rest [default: 1]
    #[arg(long, value_parser = parse_count, value_delimiter = ',', value_name = "N")]
    threads: Vec<usize>,
    /// The length of keys in bytes; paths have lengths of their own [default: 16]
    #[arg(long, value_delimiter = ',', value_name = "N")]
    key_len: Vec<usize>,
    /// The length of values in bytes [default: 100]
    #[arg(long, value_delimiter = ',', value_name = "N")]
    value_len: Vec<usize>,
}

/// A number above zero, in thousands if it ends in K and in millions if it ends in M.
pub(crate) fn parse_count(text: &str) -> Result<usize, String> {
    let units = [("K", 1000), ("k", 1000), ("M", 1_000_000), ("m", 1_000_000)];
    let unit = units.into_iter().find_map(|(letter, unit)| Some((text.strip_suffix(letter)?, unit)));
    let (digits, unit) = unit.unwrap_or((text, 1));
    let number = digits.parse::<usize>().ok().and_then(|digits| digits.checked_mul(unit)).filter(|&number| number > 0);
    number.ok_or_else(|| format!("expected a number such as 100K, found {text}"))
}

/// Subjects that take turns at the same workloads on tables of one shape.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cell {
    pub(crate) shape: Shape,
    pub(crate) subjects: Vec<Subject>,
    pub(crate) workloads: Vec<Workload>,
}

fn or<T: Copy>(values: &[T], default: T) -> Vec<T> {
    if values.is_empty() { vec![default] } else { values.to_vec() }
}

impl Matrix {
    /// The matrices of the preset `name`.
    pub(crate) fn preset(name: &str) -> Result<Vec<Self>, String> {
        let known = PRESETS.map(|(name, _)| name).join(", ");
        let (_, text) =
            PRESETS.iter().find(|of| of.0 == name).ok_or(format!("expected a preset ({known}), found {name}"))?;
        serde_json::from_str(text).map_err(|error| format!("preset {name}: {error}"))
    }

    /// Whether it names more than subjects and workloads.
    pub(crate) fn has_shapes(&self) -> bool {
        let (subjects, workloads) = (self.subjects.clone(), self.workloads.clone());
        *self != Self { subjects, workloads, ..Self::default() }
    }

    /// Every combination, in the order of the arguments.
    pub(crate) fn shapes(&self) -> Vec<Shape> {
        let (keys, access) = (or(&self.keys, KeySet::Random), or(&self.access, Access::Uniform));
        let (key_lens, value_lens) = (or(&self.key_len, KEY_LEN), or(&self.value_len, VALUE_LEN));
        let (stores, threads) = (or(&self.store, Store::Table), or(&self.threads, 1));
        let all = iproduct!(stores, keys, access, key_lens, value_lens, threads);
        all.flat_map(|(store, keys, access, key_len, value_len, threads)| {
            let entries = or(&self.entries, ENTRIES[usize::from(!store.is_table())]);
            entries.into_iter().map(move |entries| Shape { keys, access, entries, threads, key_len, value_len, store })
        })
        .collect()
    }

    /// The cell of `shape`: the subjects that are built and can do one of the workloads, and the workloads that one of them can do.
    fn cell(&self, shape: Shape) -> Cell {
        let wants = |workload: &Workload| self.workloads.is_empty() || self.workloads.contains(workload);
        let all: Vec<_> = Workload::of(shape.store).filter(wants).collect();
        let takes_part = |subject: &Subject| {
            let is_named = self.subjects.contains(subject);
            (is_named || self.subjects.is_empty() && (*subject != Subject::Skl || shape.entries <= MOST_OF_SKL))
                && subject.missing_feature().is_none()
                && all.iter().any(|&workload| subject.can(workload))
        };
        let subjects: Vec<_> = Subject::of(shape.store).filter(takes_part).collect();
        let workloads = all.into_iter().filter(|&of| subjects.iter().any(|subject| subject.can(of))).collect();
        Cell { shape, subjects, workloads }
    }
}

/// The cells of all matrices, with `most` entries at most. Cells of equal shape are one.
pub(crate) fn cells(matrices: &[Matrix], most: usize) -> Result<Vec<Cell>, String> {
    let mut cells: Vec<Cell> = Vec::new();
    for (matrix, mut shape) in matrices.iter().flat_map(|of| of.shapes().into_iter().map(move |shape| (of, shape))) {
        shape.entries = shape.entries.min(most.max(shape.threads));
        let cell = matrix.cell(shape);
        if cell.subjects.is_empty() {
            continue;
        }
        cell.check()?;
        match cells.iter_mut().find(|other| other.shape == shape) {
            Some(same) => same.absorb(&cell),
            None => cells.push(cell),
        }
    }
    if cells.is_empty() {
        Err("none of the subjects that are built can do any of the workloads".into())
    } else {
        Ok(cells)
    }
}

impl Cell {
    /// Adds the subjects and workloads of another cell of the same shape.
    fn absorb(&mut self, other: &Self) {
        let is_in = |of: &Subject| self.subjects.contains(of) || other.subjects.contains(of);
        let is_done = |of: &Workload| self.workloads.contains(of) || other.workloads.contains(of);
        let subjects = Subject::value_variants().iter().copied().filter(is_in).collect();
        self.workloads = Workload::value_variants().iter().copied().filter(is_done).collect();
        self.subjects = subjects;
    }

    /// Keeps only the subjects and workloads that `named` names, if it names any.
    pub(crate) fn narrow(&mut self, named: &Matrix) {
        self.subjects.retain(|of| named.subjects.is_empty() || named.subjects.contains(of));
        let is_wanted = |of: &Workload| named.workloads.is_empty() || named.workloads.contains(of);
        self.workloads.retain(|of| is_wanted(of) && self.subjects.iter().any(|subject| subject.can(*of)));
        self.subjects.retain(|of| self.workloads.iter().any(|&workload| of.can(workload)));
    }

    /// Refuses what cannot be measured.
    fn check(&self) -> Result<(), String> {
        let Shape { entries, threads, key_len, value_len, .. } = self.shape;
        let refuse = |is_wrong: bool, why: String| if is_wrong { Err(why) } else { Ok(()) };
        refuse(key_len < SHORTEST_KEY, format!("expected keys of at least {SHORTEST_KEY} bytes, found {key_len}"))?;
        refuse(
            value_len < SHORTEST_VALUE,
            format!("expected values of at least {SHORTEST_VALUE} bytes, found {value_len}"),
        )?;
        let most = entries.min(MOST_THREADS);
        refuse(threads > most, format!("expected at most {most} threads for {entries} entries, found {threads}"))?;
        if let Some(&alone) = self.workloads.iter().find(|of| threads > 1 && !of.takes_threads()) {
            return Err(format!("workload {} takes one thread, found {threads}", name(alone)));
        }
        // The table, the input, and the operations of a workload, which repeat the keys.
        let needed = self.shape.table_memory().saturating_mul(3);
        let available = memory_available().unwrap_or(u64::MAX);
        refuse(
            needed > available,
            format!("{entries} entries do not fit in memory: {} MiB of {}", needed >> 20, available >> 20),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_is_every_combination_once_and_cells_of_one_shape_are_one() {
        // Catches a combination that is left out or measured twice, subjects without work, and presets that cannot be read or name no subject.
        let of = |text: &str| serde_json::from_str::<Matrix>(text).expect("a matrix");
        let two =
            of(r#"{"keys": ["random", "paths"], "entries": [1000, 2000], "threads": [1, 2], "workloads": ["get"]}"#);
        let cells_of_two = cells(&[two.clone(), two], usize::MAX).expect("cells");
        assert_eq!(cells_of_two.len(), 8);
        assert!(
            cells_of_two.iter().all(|cell| !cell.subjects.contains(&Subject::Vec) && cell.workloads == [Workload::Get])
        );
        let both = [
            of(r#"{"subjects": ["vec"], "entries": [9]}"#),
            of(r#"{"subjects": ["memtable"], "workloads": ["get"], "entries": [9]}"#),
        ];
        let both = cells(&both, usize::MAX).expect("cells");
        assert_eq!((both.len(), &both[0].subjects[..]), (1, &[Subject::Memtable, Subject::Vec][..]));
        assert_eq!(both[0].workloads, [Workload::Insert, Workload::Sort, Workload::Get]);
        for (name, _) in PRESETS {
            let matrices = Matrix::preset(name).expect(name);
            assert!(
                cells(&matrices, 100).is_ok_and(|cells| cells.iter().all(|cell| cell.shape.entries <= 100)),
                "{name}"
            );
        }
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        // Catches a unit that is off by a factor, an accepted 0, an overflow, and runs that would fail after an hour.
        assert_eq!(["7", "100K", "100k", "3M"].map(parse_count), [Ok(7), Ok(100_000), Ok(100_000), Ok(3_000_000)]);
        assert!(["0K", "1.5M", "", "18446744073709551615K"].into_iter().all(|text| parse_count(text).is_err()));
        for (text, why) in [
            (r#"{"key-len": [15]}"#, "keys of at least 16"),
            (r#"{"value-len": [7]}"#, "values of at least 8"),
            (r#"{"threads": [11], "entries": [10]}"#, "at most 10 threads"),
            (r#"{"entries": [18446744073709551615]}"#, "do not fit in memory"),
            (r#"{"store": ["engine"], "workloads": ["ycsb-a"], "threads": [2]}"#, "ycsb-a takes one thread"),
            (r#"{"subjects": ["vec"], "workloads": ["get"]}"#, "none of the subjects"),
        ] {
            let refusal = cells(&[serde_json::from_str(text).expect("a matrix")], usize::MAX).expect_err(text);
            assert!(refusal.contains(why), "{refusal}");
        }
        assert!(Matrix::preset("tests").is_err_and(|why| why.contains("tables, published")));
    }
}
