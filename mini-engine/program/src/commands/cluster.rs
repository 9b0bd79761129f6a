//! `cluster`: makes, changes and shows a cluster.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use mini_engine_cluster::{Check, MAX_GROUPS, Member, Position, Removed, recover};

use crate::failure::{Exit, Failure, IO, shown};
use crate::node::security::SecurityArgs;
use crate::node::serve::allow_files;
use crate::node::{runtime, status};
use crate::output::{self, Output};

/// Make, change or show a cluster of nodes that `serve --cluster` runs
#[derive(Args)]
#[command(after_help = "\
Examples:
  mini-engine serve --cluster node-1 --listen 127.0.0.1:7001 --cluster-listen 127.0.0.1:17001
  mini-engine serve --cluster node-2 --listen 127.0.0.1:7002 --cluster-listen 127.0.0.1:17002
  mini-engine serve --cluster node-3 --listen 127.0.0.1:7003 --cluster-listen 127.0.0.1:17003

  mini-engine cluster init 127.0.0.1:17001 127.0.0.1:17002 127.0.0.1:17003
  redis-cli -c -p 7001 set milk '2 litres'
  mini-engine cluster status 127.0.0.1:17001
  mini-engine cluster add 127.0.0.1:17004 --to 127.0.0.1:17001
  mini-engine cluster remove 2 --from 127.0.0.1:17001

  Five machines A to E, of which each holds three fifths of the data, and then group 1 moves from B to F:
  mini-engine cluster init A:17001 B:17001 C:17001 D:17001 E:17001 --groups 5 --replicas 3
  mini-engine cluster add F:17001 --to A:17001 --groups 1
  mini-engine cluster remove B:17001 --from A:17001 --groups 1
  mini-engine cluster move-leader A:17001 --to F:17001 --groups 1
  mini-engine cluster rebalance A:17001 --dry-run

  A backup, and a new cluster of it:
  mini-engine cluster backup A:17001 monday
  mini-engine cluster recover --from monday new-1 --advertise 127.0.0.1:7001 --cluster-advertise 127.0.0.1:17001
  mini-engine serve --cluster new-1 --listen 127.0.0.1:7001 --cluster-listen 127.0.0.1:17001")]
pub(crate) struct ClusterArgs {
    #[command(subcommand)]
    asked: Asked,
}

#[derive(Subcommand)]
enum Asked {
    Init(InitArgs),
    Add(AddArgs),
    Remove(RemoveArgs),
    Status(StatusArgs),
    MoveLeader(MoveLeaderArgs),
    Rebalance(RebalanceArgs),
    Check(CheckArgs),
    Backup(BackupArgs),
    Recover(RecoverArgs),
}

/// Make a cluster of nodes that run and are in none: three or five, so that a majority is left when one or two fail
#[derive(Args)]
struct InitArgs {
    /// The nodes, as given with --cluster-listen
    #[arg(value_name = "ADDR", required = true)]
    nodes: Vec<String>,
    /// Groups, each with a part of the keys and a leader of its own. The number never changes
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_GROUPS)))]
    groups: u32,
    /// Nodes that hold each group: the first N of them for the first group, for the next one those from the second
    /// node on, and so on. Three survive the loss of one, five that of two [default: all nodes]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    replicas: Option<u32>,
    #[command(flatten)]
    security: SecurityArgs,
}

/// Make a running node, which may be one of the cluster already, a member of groups. It gets their data first, and then a vote
#[derive(Args)]
struct AddArgs {
    /// The new node, as given with --cluster-listen
    #[arg(value_name = "ADDR")]
    node: String,
    /// Any node of the cluster
    #[arg(long, value_name = "ADDR")]
    to: String,
    /// The groups, as 1,3 [default: all, if every node holds all]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    groups: Option<Vec<u32>>,
    #[command(flatten)]
    security: SecurityArgs,
}

/// Take a node out of groups, whether it runs or not. It frees their space when it hears of it
#[derive(Args)]
struct RemoveArgs {
    /// The number or an address of the node
    #[arg(value_name = "NODE")]
    node: String,
    /// Any node of the cluster that stays
    #[arg(long, value_name = "ADDR")]
    from: String,
    /// The groups, as 1,3 [default: all]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    groups: Option<Vec<u32>>,
    /// Remove it also where most of the other nodes of a group do not answer this command
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    security: SecurityArgs,
}

// A doc comment here would replace that of the command.
#[derive(Args)]
struct AnyNode {
    /// Any node of the cluster
    #[arg(value_name = "ADDR")]
    node: String,
    #[command(flatten)]
    security: SecurityArgs,
}

/// Show the nodes of a cluster: which groups each holds and leads, how far it is behind, its clock and the space on its disk
#[derive(Args)]
struct StatusArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    at: AnyNode,
}

/// Make a node the leader of groups, for example before the machine of the present leader is stopped
#[derive(Args)]
struct MoveLeaderArgs {
    /// The number or an address of the node that is to lead
    #[arg(long, value_name = "NODE")]
    to: String,
    /// The groups, as 1,3 [default: all in which it votes]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    groups: Option<Vec<u32>>,
    #[command(flatten)]
    at: AnyNode,
}

/// Move groups and leaders from nodes with many to nodes with few, each printed before it is made, until no single move helps
#[derive(Args)]
struct RebalanceArgs {
    /// Only print the moves
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    at: AnyNode,
}

/// Compare the replicas of each group: all nodes hash what they hold at the same entry of the log
///
/// Every node reads all of its data once, while it serves its clients. Exit code 3: replicas differ; 4: a node could not be compared.
#[derive(Args)]
struct CheckArgs {
    #[command(flatten)]
    at: AnyNode,
}

/// Copy the data of a running cluster to a directory of this machine
///
/// The directory gets a database for each group, state-0/state-000001 and so on, which verify and scan read, and backup.json.
/// A group's database is its state at one moment, and holds everything that was acknowledged before the command began; the
/// groups are copied one after the other. DIR is there only with the whole: a backup that fails leaves nothing, one that is
/// interrupted leaves DIR.incomplete.
#[derive(Args)]
struct BackupArgs {
    #[command(flatten)]
    at: AnyNode,
    /// Directory of the backup, which must not exist
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Make a new cluster of one node, from a backup or from what is left of a cluster that has lost its majority for good
///
/// The new node has everything that is in the copies, also what a node had not applied yet. The new cluster lacks what the
/// copies lack, even if it was acknowledged; it may have writes that never were. Its number is another one, so nodes of
/// the old cluster are refused. Nothing is changed in the directories that are copied.
#[derive(Args)]
struct RecoverArgs {
    /// Directory of the new node, which must not exist
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// A backup, or the directory of a stopped node. Give several if none has all groups; of a group that is in several, the
    /// copy with the last log entry is taken
    #[arg(long, value_name = "DIR", required = true)]
    from: Vec<PathBuf>,
    /// The address at which clients will reach the new node: --listen of `serve --cluster`, or --advertise
    #[arg(long, value_name = "ADDR")]
    advertise: String,
    /// The address at which other nodes will reach it: --cluster-listen of `serve --cluster`, or --cluster-advertise
    #[arg(long, value_name = "ADDR")]
    cluster_advertise: String,
}

pub(crate) fn run(args: &ClusterArgs) -> Result<Exit, Failure> {
    let mut output = Output::new();
    let exit = runtime::run(async {
        match &args.asked {
            Asked::Check(args) => return check(args, &mut output).await,
            Asked::Init(args) => init(args, &mut output).await,
            Asked::Add(args) => add(args, &mut output).await,
            Asked::Remove(args) => remove(args, &mut output).await,
            Asked::Status(args) => show(args, &mut output).await,
            Asked::MoveLeader(args) => move_leader(args, &mut output).await,
            Asked::Rebalance(args) => rebalance(args, &mut output).await,
            Asked::Backup(args) => back_up(args, &mut output).await,
            Asked::Recover(args) => recover_cluster(args, &mut output).await,
        }
        .map(|()| Exit::Done)
    })?;
    output.finish()?;
    Ok(exit)
}

async fn init(args: &InitArgs, output: &mut Output) -> Result<(), Failure> {
    let replicas = args.replicas.unwrap_or(args.nodes.len() as u32);
    let members = args.security.client()?.init(&args.nodes, args.groups, replicas).await?;
    output.write(|out| {
        members.iter().try_for_each(|(node, member)| writeln!(out, "node {node} ({})", member.cluster))?;
        writeln!(out, "the cluster is made")
    })
}

/// Says how far a new member of a group is behind.
fn lag() -> impl FnMut(u32, u64) {
    let mut said = None;
    move |group, behind| {
        // Rounded to thousands, because the last digits change all the time.
        let about = behind / 1000;
        if behind > 1000 && said.replace((group, about)) != Some((group, about)) {
            output::say(format_args!("group {group}: {behind} log entries to go"));
        }
    }
}

async fn add(args: &AddArgs, output: &mut Output) -> Result<(), Failure> {
    let client = args.security.client()?;
    let node = client.add(&args.node, &args.to, args.groups.as_deref(), lag()).await?;
    output.write(|out| writeln!(out, "node {node} ({}) added", args.node))
}

async fn remove(args: &RemoveArgs, output: &mut Output) -> Result<(), Failure> {
    let client = args.security.client()?;
    let Removed { node, is_member } = client.remove(&args.node, &args.from, args.groups.as_deref(), args.force).await?;
    output.write(|out| match is_member {
        true => writeln!(out, "node {node} removed; it frees the space of what it does not hold any more"),
        false => writeln!(out, "node {node} removed; end its process, and delete its directory"),
    })
}

async fn show(args: &StatusArgs, output: &mut Output) -> Result<(), Failure> {
    let found = args.at.security.client()?.status(&args.at.node).await?;
    output.write(|out| match args.json {
        true => writeln!(out, "{}", status::to_json(&found)),
        false => status::print(&found, out),
    })
}

async fn move_leader(args: &MoveLeaderArgs, output: &mut Output) -> Result<(), Failure> {
    let client = args.at.security.client()?;
    let (node, groups) = client.move_leader(&args.to, &args.at.node, args.groups.as_deref()).await?;
    output.write(|out| groups.iter().try_for_each(|group| writeln!(out, "node {node} leads group {group}")))
}

async fn rebalance(args: &RebalanceArgs, output: &mut Output) -> Result<(), Failure> {
    let client = args.at.security.client()?;
    // An error of stdout stops no move, and returns at the end.
    let print = |step| _ = output.write(|out| writeln!(out, "{step}")).and_then(|()| output.flush());
    client.rebalance(&args.at.node, args.dry_run, print, lag()).await?;
    if args.dry_run { Ok(()) } else { output.write(|out| writeln!(out, "no single move helps any more")) }
}

async fn check(args: &CheckArgs, output: &mut Output) -> Result<Exit, Failure> {
    let (mut groups, mut differ, mut all_compared) = (0, false, true);
    let client = args.at.security.client()?;
    let progress = |Check { group, position, nodes, differences, unchecked }| {
        output::say(format_args!("group {group}: nodes {nodes:?} were compared at log entry {}", position.index));
        for ((first, last), nodes) in &differences {
            output::say(format_args!("group {group}: slots {first} to {last} differ on nodes {nodes:?}"));
        }
        for (node, reason) in &unchecked {
            output::say(format_args!("group {group}: node {node} was not compared: {reason}"));
        }
        groups += 1;
        differ |= !differences.is_empty();
        all_compared &= unchecked.is_empty();
    };
    match client.check(&args.at.node, progress).await {
        // A difference that was found before outranks the error.
        Err(error) if differ => output::say(format_args!("{}", Failure::from(error))),
        checked => checked?,
    }
    Ok(match (differ, all_compared) {
        (true, _) => Exit::Incomplete,
        (false, false) => Exit::With(IO),
        (false, true) => {
            output.write(|out| writeln!(out, "the replicas of {groups} groups are equal"))?;
            Exit::Done
        }
    })
}

async fn back_up(args: &BackupArgs, output: &mut Output) -> Result<(), Failure> {
    let client = args.at.security.client()?;
    allow_files();
    let progress = |group, last: Position| output::say(format_args!("group {group}: up to log entry {}", last.index));
    let cluster = client.backup(&args.at.node, &args.directory, progress).await?;
    output
        .write(|out| writeln!(out, "the backup of cluster {cluster:016x} is complete; each group is of another moment"))
}

async fn recover_cluster(args: &RecoverArgs, output: &mut Output) -> Result<(), Failure> {
    let RecoverArgs { directory, from, advertise, cluster_advertise } = args;
    let member = Member { cluster: cluster_advertise.clone(), clients: advertise.clone() };
    allow_files();
    let progress = |group, from: &Path, Position { term, index, .. }| {
        output::say(format_args!("group {group}: up to log entry {index} of term {term}, from {}", from.display()));
    };
    let cluster = recover(from, directory, member, progress).await?;
    output.write(|out| writeln!(out, "{} is the only node of the new cluster {cluster:016x}", directory.display()))?;
    output::say(format_args!("warning: later writes of the old cluster are lost, even if they were acknowledged"));
    output::say(format_args!(
        "next: `mini-engine serve --cluster {}` with these addresses, then `cluster add` nodes with empty directories. Delete the \
         directories of the old nodes: they cannot join",
        shown(directory)
    ));
    Ok(())
}
