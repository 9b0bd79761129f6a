//! Compares the weight of each crate with `weights.txt`: a crate that has grown fails the test until the record is changed in the same commit,
//! whose message gives the reason. `WEIGHTS=record cargo test -p mini-engine --test layers weights` writes the record.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::{env, fmt, fs};

use crate::imports::{is_test_only, split_tests};
use crate::journeys::workspace;

/// Crates that test or measure: all their lines count as tests.
const PROOFS: [&str; 4] = ["fuzz", "loom-tests", "memtable-bench", "proof"];
/// The other crates, by directory.
const SHIPPED: [&str; 6] =
    ["fastskip", "mini-engine", "mini-engine/cluster", "mini-engine/program", "mini-engine/raft", "mini-engine/server"];
const HEAD: &str = "\
# Lines of code (without tests, comments and blanks), of comments beside it, and of tests (all lines); files; public items; and crates that a
# dependent compiles. See `weights.rs`: no number may grow without a change of this record, and a reason for it in the commit.
";

#[derive(Default)]
struct Weight {
    code: usize,
    comments: usize,
    tests: usize,
    files: usize,
    public: usize,
    crates: usize,
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Weight { code, comments, tests, files, public, crates } = self;
        write!(f, "code {code} comments {comments} tests {tests} files {files} public {public} crates {crates}")
    }
}

impl Weight {
    fn measured(package: &Path, is_proof: bool) -> Weight {
        let mut weight = Weight::default();
        weight.add_directory(package, is_proof);
        if !is_proof {
            weight.crates = crates(package);
        }
        weight
    }

    fn add_directory(&mut self, dir: &Path, is_test: bool) {
        for path in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
            let is_test =
                is_test || ["benches", "examples"].iter().any(|name| path.ends_with(name)) || is_test_only(&path);
            if path.is_dir() {
                // A crate inside another crate's directory has its own weight, except inside a test crate: shuttle's models, counts.
                if !path.ends_with("target") && (is_test || !path.join("Cargo.toml").exists()) {
                    self.add_directory(&path, is_test);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                self.add(&fs::read_to_string(&path).unwrap(), is_test);
            }
        }
    }

    fn add(&mut self, text: &str, is_test: bool) {
        self.files += 1;
        let (shipped, tests) = if is_test { ("", text) } else { split_tests(text) };
        self.tests += tests.lines().count();
        for line in shipped.lines().map(str::trim_start).filter(|line| !line.is_empty()) {
            let is_comment = line.starts_with("//");
            self.comments += usize::from(is_comment);
            self.code += usize::from(!is_comment);
            self.public += usize::from(line.starts_with("pub "));
        }
    }
}

/// The number of crates that a dependent of `package` compiles for it, including `package`, with default features.
fn crates(package: &Path) -> usize {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["tree", "--offline", "--locked", "--edges", "normal,build", "--prefix", "none", "--format", "{p}"]);
    let done = cargo.current_dir(package).output().expect("cargo runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let listed = String::from_utf8(done.stdout).expect("text");
    listed.lines().map(|line| line.trim_end_matches(" (*)")).collect::<BTreeSet<_>>().len()
}

fn numbers(line: &str) -> Vec<usize> {
    line.split(' ').filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn no_crate_grows_beyond_its_record() {
    // Catches lines, files, public items and dependencies that are added without a reason.
    let root = workspace();
    let packages = SHIPPED.iter().map(|name| (name, false)).chain(PROOFS.iter().map(|name| (name, true)));
    let found: Vec<String> = packages
        .filter(|(name, _)| root.join(name).exists())
        .map(|(name, is_proof)| format!("{name}: {}", Weight::measured(&root.join(name), is_proof)))
        .collect();
    let record = root.join("mini-engine/tests/layers/weights.txt");
    if env::var_os("WEIGHTS").is_some_and(|mode| mode == "record") {
        fs::write(&record, format!("{HEAD}{}\n", found.join("\n"))).unwrap();
    }
    let recorded = fs::read_to_string(&record).unwrap();
    for now in &found {
        let name = now.split(' ').next().unwrap();
        let line = recorded.lines().find(|line| line.split(' ').next() == Some(name));
        let line = line.unwrap_or_else(|| panic!("{name} is not in {}", record.display()));
        let (now_numbers, recorded) = (numbers(now), numbers(line));
        assert_eq!(now_numbers.len(), recorded.len(), "{line}");
        let has_grown = now_numbers.iter().zip(&recorded).any(|(now, recorded)| now > recorded);
        assert!(!has_grown, "a crate has grown: recorded {line}; found {now}; WEIGHTS=record records it");
    }
}

#[test]
fn a_line_is_counted_as_what_it_is() {
    // Catches a count that leaves lines out, and one that takes tests or comments for code.
    let mut weight = Weight::default();
    weight.add("//! A\n\npub fn a() {}\n    // b\nlet c;\n\n#[cfg(test)]\nmod tests {\n    // d\n}\n", false);
    weight.add("fn e() {}\n", true);
    assert_eq!(weight.to_string(), "code 2 comments 2 tests 5 files 2 public 1 crates 0");
}
