//! The commands, in the order in which the help shows them. A new command needs a file here and a line below.

use clap::Subcommand;

use crate::failure::{Exit, Failure};

/// Each line has the command's file, whose `run` carries out the command, and the type of its arguments, whose documentation is the command's help.
macro_rules! commands {
    ($($(#[$attribute:meta])? $module:ident: $name:ident($arguments:ident),)*) => {
        $($(#[$attribute])? mod $module;)*

        /// The command that the program carries out.
        #[derive(Subcommand)]
        #[cfg_attr(feature = "cluster", expect(clippy::large_enum_variant, reason = "there is one"))]
        pub(crate) enum Command {
            $($name($module::$arguments),)*
        }

        impl Command {
            pub(crate) fn run(&self) -> Result<Exit, Failure> {
                match self {
                    $(Self::$name(arguments) => $module::run(arguments),)*
                }
            }
        }
    };
}

commands! {
    import: Import(ImportArgs),
    export: Export(ExportArgs),
    get: Get(GetArgs),
    put: Put(PutArgs),
    ttl: Ttl(TtlArgs),
    delete: Delete(DeleteArgs),
    scan: Scan(ScanArgs),
    count: Count(CountArgs),
    keyspaces: Keyspaces(KeyspacesArgs),
    stats: Stats(StatsArgs),
    compact: Compact(CompactArgs),
    verify: Verify(VerifyArgs),
    repair: Repair(RepairArgs),
    checkpoint: Checkpoint(CheckpointArgs),
    quarantine: Quarantine(QuarantineArgs),
    dump: Dump(DumpArgs),
    serve: Serve(ServeArgs),
    #[cfg_attr(not(feature = "cluster"), path = "without_clusters.rs")]
    cluster: Cluster(ClusterArgs),
    bench: Bench(BenchArgs),
}
