//! Kills a process while it writes, and checks what is left: every acknowledged write, and no partial write. The program starts itself as the
//! process that is killed. `cargo run -p mini-engine --example crash_recovery`

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use mini_engine::{Db, Durability, WriteBatch};

/// Moves money between two accounts for ever, and prints a line when each transfer is durable.
fn write_for_ever(path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let db = Db::builder(path).memtable_bytes(64 << 10).open()?;
    for number in 1_u64.. {
        let mut batch = WriteBatch::new();
        batch.insert("accounts/a", (1_000_000 - number).to_string())?;
        batch.insert("accounts/b", number.to_string())?;
        batch.insert(format!("transfers/{number:010}"), "1 from a to b")?;
        // `Synced` writes survive a power failure. `Durability::Buffered` would be enough to survive the kill.
        db.write(batch, Durability::Synced)?;
        println!("{number}");
        std::io::stdout().flush()?;
    }
    Ok(())
}

fn amount(db: &Db, account: &str) -> Result<u64, Box<dyn std::error::Error>> {
    let value = db.get(account)?.ok_or("no such account")?;
    Ok(std::str::from_utf8(&value)?.parse()?)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if let Some(path) = std::env::args_os().nth(1) {
        return write_for_ever(Path::new(&path));
    }
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("bank.db");
    let mut writer = Command::new(std::env::current_exe()?).arg(&path).stdout(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(writer.stdout.take().ok_or("no output")?).lines();
    let begun = lines.by_ref().take(500).last().ok_or("no transfer")??;
    println!("killed after transfer {begun}");

    // Only one process writes to a database.
    println!("beside the writer: {}", Db::open(&path).unwrap_err());

    // Like `kill -9`: the process closes, flushes and prints nothing more.
    writer.kill()?;
    writer.wait()?;
    let acknowledged: u64 = lines.last().unwrap_or(Ok(begun))?.parse()?;

    // Opening recovers. The report describes the recovery, and `findings` lists problems to look at; after a kill there are none.
    let db = Db::open(&path)?;
    let report = db.recovery();
    println!("replayed {} batches from {} logs", report.batches_replayed, report.logs_replayed);
    assert_eq!(report.findings(), [""; 0]);

    // No acknowledged transfer is missing, and each is whole, since the sum never changes. The last transfer may not have been acknowledged.
    let transfers = db.prefix("transfers/").count() as u64;
    println!("{acknowledged} transfers were acknowledged, {transfers} are there");
    assert!(transfers >= acknowledged);
    assert_eq!((amount(&db, "accounts/a")?, amount(&db, "accounts/b")?), (1_000_000 - transfers, transfers));
    assert!(db.verify()?.is_sound());
    db.close()?;
    Ok(())
}
