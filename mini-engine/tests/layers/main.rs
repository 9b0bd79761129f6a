//! Checks of the sources. Dependencies between modules and files run one way in the engine, the server, the program, the storage for openraft and the
//! cluster. Two call paths through the engine stay short, all links have a target, headings are well-formed, and no crate grows unnoticed.

mod headings;
mod imports;
mod journeys;
mod links;
mod weights;

use std::path::{Path, PathBuf};

use imports::{Sources, in_circles};

/// A crate: its sources below this package, its layers, lowest first, and the files that may start threads. A module may use modules of lower
/// layers, but none of its own layer. The parts of one module may use each other.
struct Crate {
    src: &'static str,
    layers: &'static [&'static [&'static str]],
    starts_threads: &'static [&'static str],
}

const ENGINE: Crate = Crate {
    src: "src",
    layers: &[
        &["error"],
        &["codec", "lock", "sync"],
        &["epoch", "types"],
        &["columns", "options"],
        &["metrics"],
        &["fs", "cache", "iter"],
        &["wal", "table"],
        &["manifest", "memtables"],
        &["compaction"],
        &["db"],
        &["typed"],
    ],
    starts_threads: &["db::background::"],
};
const SERVER: Crate = Crate {
    src: "server/src",
    layers: &[
        &["error"],
        &["settings"],
        &["protocol", "transport"],
        &["tls", "without_tls"],
        &["groups"],
        &["state"],
        &["commands"],
        &["session"],
        &["net", "replicated"],
    ],
    starts_threads: &["net::worker"],
};
const PROGRAM: Crate = Crate {
    src: "program/src",
    layers: &[
        &["node_directory", "number", "size", "trace"],
        &["expiry", "failure", "levels"],
        &["bytes", "output", "password", "progress", "source"],
        &["database", "keys", "keyspace"],
        &["record"],
        &["bench", "import", "node"],
        &["commands", "completions", "shell"],
        &["main"],
    ],
    starts_threads: &["bench::workload", "import::interrupt", "progress"],
};
const RAFT: Crate = Crate {
    src: "raft/src",
    layers: &[&["codec", "contradiction", "open", "worker", "write"], &["log", "state"]],
    starts_threads: &["worker"],
};
/// The cluster starts no threads; its runtime does.
const CLUSTER: Crate = Crate {
    src: "cluster/src",
    layers: &[
        &["error", "lock"],
        &["seldom", "settings"],
        &["checks", "clock", "retention", "slots", "space", "types"],
        &["identity", "places"],
        &["starts"],
        &["wire"],
        &["network"],
        &["application"],
        &["group"],
        &["local"],
        &["control"],
        &["cluster_command", "gauges", "unproven"],
        &["bridge", "gossip", "inbound"],
        &["node"],
    ],
    starts_threads: &[],
};
const CRATES: [Crate; 5] = [ENGINE, SERVER, PROGRAM, RAFT, CLUSTER];

/// The lowest layer of the engine that may name the memtable crate.
const MEMTABLE_FROM: usize = 7;
/// The layers inside folders of the engine. The file beside a folder is its public face, and is above all files in it.
const FOLDERS: [(&str, &[&[&str]]); 2] = [
    (
        "db",
        &[
            &["core"],
            &["write", "read"],
            &["transaction"],
            &["background"],
            &["recovery", "admin", "care"],
            &["handle"],
            &["keyspace"],
        ],
    ),
    ("table", &[&["format"], &["block"], &["index"], &["builder", "walk"], &["read"]]),
];

impl Crate {
    fn sources(&self) -> Sources {
        Sources::read(&package().join(self.src))
    }
}

fn package() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn root(module: &str) -> &str {
    module.split("::").next().unwrap()
}

fn layer_of(module: &str, layers: &[&[&str]]) -> Option<usize> {
    layers.iter().position(|layer| layer.contains(&module))
}

/// Catches an import upward or sideways, a module without a layer, a use of the memtable crate below its layer, and any cycle of
/// imports.
#[test]
fn modules_use_only_lower_layers_and_files_never_each_other() {
    for house in CRATES {
        let sources = house.sources();
        let graph = sources.graph();
        let imports: usize = graph.values().map(|imports| imports.len()).sum();
        assert!(graph.len() > 15 && imports > graph.len(), "{}: {} files, {imports} imports", house.src, graph.len());
        assert_eq!(in_circles(&graph), [""; 0], "{}", house.src);
        for (file, imports) in &graph {
            let layer = |file: &str| layer_of(root(file), house.layers);
            let own = layer(file).unwrap_or_else(|| panic!("{}: {file} has no layer", house.src));
            for used in imports.iter().filter(|used| root(used) != root(file)) {
                assert!(layer(used).is_some_and(|layer| layer < own), "{}: {file} uses {used}", house.src);
            }
            let names_the_memtable = sources.0[file].contains("fastskip::");
            let may = house.src == ENGINE.src && own >= MEMTABLE_FROM;
            assert!(may || !names_the_memtable, "{}: {file} names the memtable crate", house.src);
        }
    }
}

/// Catches an import upward inside a folder: a read that depends on threads, a core that depends on writes, or an import between recovery and
/// administration.
#[test]
fn folders_use_only_lower_ones() {
    let graph = ENGINE.sources().graph();
    for (room, layers) in FOLDERS {
        let folder = |file: &str| {
            let inside = file.strip_prefix(room)?.strip_prefix("::")?;
            Some(inside.split("::").next().unwrap_or(inside).to_owned())
        };
        let layer = |file: &str| folder(file).and_then(|folder| layer_of(&folder, layers)).unwrap_or(layers.len());
        let mut checked = 0;
        for (file, imports) in graph.iter().filter(|(file, _)| root(file) == room) {
            for used in imports.iter().filter(|used| root(used) == room && folder(used) != folder(file)) {
                let handle_of_builder = (file.as_str(), used.as_str()) == ("db::builder", "db");
                assert!(layer(used) < layer(file) || handle_of_builder, "{file} uses {used}");
                checked += 1;
            }
        }
        assert!(checked > 30, "only {checked} imports of {room} were found");
    }
}

/// Catches a dependency that only the program or the server needs and a user of the engine would have to compile, and an engine that depends on them.
#[test]
fn the_engine_is_a_library_and_nothing_else() {
    let manifest = |package: &Path| std::fs::read_to_string(package.join("Cargo.toml")).unwrap();
    let engine = manifest(&package());
    let (engine, _) = engine.split_once("[dev-dependencies]").unwrap();
    assert!(!package().join("src/main.rs").exists());
    let optional = engine.lines().filter_map(|line| line.strip_suffix(" = { workspace = true, optional = true }"));
    assert_eq!(optional.collect::<Vec<_>>(), ["rmp-serde", "serde", "zstd"]);
    let names = "clap clap_complete hdrhistogram indicatif itoa mio redis-protocol rustls serde_json sha1_smol signal-hook tracing-subscriber";
    for name in names.split(' ') {
        let is_named = |text: &str| text.lines().any(|line| line.split(['.', ' ']).next() == Some(name));
        let of_others = [manifest(&package().join("program")), manifest(&package().join("server"))];
        assert!(of_others.iter().any(|text| is_named(text)), "{name}: nothing needs it");
        assert!(!is_named(engine), "{name}");
    }
}

/// Catches threads that are not joined at the end.
#[test]
fn only_the_workers_are_threads() {
    for house in CRATES {
        let starts =
            |code: &str| ["thread::spawn", "thread::Builder", "scope.spawn"].iter().any(|start| code.contains(start));
        let found: Vec<String> =
            house.sources().0.into_iter().filter(|file| starts(&file.1)).map(|file| file.0).collect();
        assert_eq!(found.is_empty(), house.starts_threads.is_empty(), "threads of {}: {found:?}", house.src);
        for file in found {
            let allowed = house.starts_threads.iter().any(|allowed| file.starts_with(allowed));
            assert!(allowed, "{}: {file} starts a thread", house.src);
        }
    }
}
