//! Counts the instructions and the atomic read-modify-writes of an operation on 100,000 entries, and compares them with `counts.txt`.
//!
//! `cargo counts [FILTER]` fails if a count is more than 3 % above the recorded one, and prints a note if one is more than 3 % below.
//! `COUNTS=record cargo counts` records the new counts. Each case runs once, in a process of its own under callgrind; other programs make no
//! difference. Needs valgrind, objdump, and gungraun-runner in the version of `gungraun`. Exit codes: 0 no growth, 1 growth, 3 unknown (a tool is
//! missing, or counts grew with another compiler).

mod cases;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs, io};

use counts::{Counts, Record, atomics, executed};

const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/counts.txt");
const HEAD: &str = "\
# Instructions and atomic read-modify-writes of an operation: 100,000 entries, keys of 16 bytes (paths are longer), values of 100, one thread.
# `cargo counts` holds the code against them, `COUNTS=record cargo counts` writes them. The first line is their compiler.

";
const TOOLS: [(&str, &str); 3] = [
    ("valgrind", "install it (Debian: apt-get install valgrind)"),
    ("objdump", "install it (Debian: apt-get install binutils)"),
    ("gungraun-runner", "run: cargo install gungraun-runner --version V, that of gungraun in Cargo.toml"),
];
const CANNOT_TELL: u8 = 3;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    if args.first().is_some_and(|arg| arg == "--gungraun-run") {
        cases::run();
        return ExitCode::SUCCESS;
    }
    if let Err(why) = can_count() {
        eprintln!("counts: {why}");
        return ExitCode::from(CANNOT_TELL);
    }
    // Profiles of an earlier run would count as this run's.
    let outputs = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("gungraun/counts");
    let _ = fs::remove_dir_all(&outputs);
    // Ends the process itself if a case fails.
    cases::run();
    let is_part = args.iter().any(|arg| !arg.starts_with('-'));
    found(&outputs).and_then(|found| hold(&found, is_part)).unwrap_or_else(|error| {
        eprintln!("counts: {error}");
        ExitCode::FAILURE
    })
}

fn can_count() -> Result<(), String> {
    if !cfg!(target_arch = "x86_64") {
        return Err("the recorded counts are those of x86-64".into());
    }
    if option_env!("CARGO_INCREMENTAL").is_some_and(|set| set != "0") {
        return Err("built incrementally, which inlines other functions; set CARGO_INCREMENTAL=0".into());
    }
    for (tool, how) in TOOLS {
        let run = Command::new(tool).arg("--version").output();
        run.map_err(|error| format!("expected {tool}, found none ({error}); {how}"))?;
    }
    Ok(())
}

/// The counts of the profiles that are below `outputs`, each in the directory of its group and its case.
fn found(outputs: &Path) -> Result<Record, String> {
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let listing = output("objdump", &["-d".as_ref(), "--no-show-raw-insn".as_ref(), program.as_os_str()])?;
    let (program, atomics) = (program.to_string_lossy(), atomics(&listing));
    let mut cases = BTreeMap::new();
    let each = |count: u64| count as f64 / cases::OPERATIONS as f64;
    for group in entries(&outputs.join("counts/cases"))? {
        for case in entries(&group)? {
            let names = [&group, &case].map(|dir| dir.file_name().unwrap_or_default().to_string_lossy());
            let profile = case.join(format!("callgrind.{}.out", names[1]));
            let text = fs::read_to_string(&profile).map_err(in_file("read", &profile))?;
            let executed = executed(&text, &program, &atomics).ok_or_else(|| format!("{names:?}: not a profile"))?;
            let counts = Counts { instructions: each(executed.instructions), atomics: each(executed.atomics) };
            cases.insert(names.join("/"), counts);
        }
    }
    let compiler = output("rustc", &["--version".as_ref()])?.trim().to_owned();
    Ok(Record { compiler, cases })
}

/// Records the counts with `COUNTS=record`; otherwise prints how they differ from the recorded ones.
fn hold(found: &Record, is_part: bool) -> Result<ExitCode, String> {
    println!("\n{:<28} {:>12} {:>7}\n{found}", "an operation", "instructions", "atomics");
    let path = Path::new(RECORD);
    if env::var_os("COUNTS").is_some_and(|ask| ask == "record") {
        fs::write(path, format!("{HEAD}{found}")).map_err(in_file("write", path))?;
        return Ok(ExitCode::SUCCESS);
    }
    let recorded = Record::parse(&fs::read_to_string(path).map_err(in_file("read", path))?)?;
    let comparison = recorded.compare(found, is_part);
    comparison.shrunk.iter().for_each(|says| println!("{says}: record it, so that it is held"));
    comparison.wrong.iter().for_each(|says| eprintln!("{says}"));
    let is_same = recorded.compiler == found.compiler;
    if !is_same {
        eprintln!("recorded with {}, found with {}: growth may be the compiler's", recorded.compiler, found.compiler);
    }
    if comparison.wrong.is_empty() {
        println!("held: nothing grew by more than 3 %");
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("if this is as it should be: COUNTS=record cargo counts");
    Ok(if is_same { ExitCode::FAILURE } else { ExitCode::from(CANNOT_TELL) })
}

fn output(program: &str, args: &[&OsStr]) -> Result<String, String> {
    let run = Command::new(program).args(args).output().map_err(|error| format!("cannot run {program}: {error}"))?;
    if !run.status.success() {
        return Err(format!("{program}: {}", String::from_utf8_lossy(&run.stderr)));
    }
    String::from_utf8(run.stdout).map_err(|error| format!("{program}: {error}"))
}

fn entries(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(dir).map_err(in_file("read", dir))?;
    entries.map(|entry| Ok(entry.map_err(in_file("read", dir))?.path())).collect()
}

fn in_file(what: &str, path: &Path) -> impl Fn(io::Error) -> String {
    move |error| format!("cannot {what} {}: {error}", path.display())
}
