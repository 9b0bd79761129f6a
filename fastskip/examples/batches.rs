//! Batches: memory is reserved first, which may fail, then the log is written, and then the batch is applied, which cannot fail.
//! `cargo run -p fastskip --example batches`

use fastskip::{InsertError, Lookup, Memtable, Op};

/// A log that refuses its third record.
struct Log(Vec<String>);

impl Log {
    fn append(&mut self, record: String) -> Result<(), String> {
        if self.0.len() == 2 {
            return Err("no space left on the device".into());
        }
        self.0.push(record);
        Ok(())
    }
}

/// The table holds exactly the writes that are in the log. All writes of a batch have one sequence number, so the whole batch becomes
/// visible once the engine publishes `seqno`.
fn write(table: &Memtable, log: &mut Log, seqno: u64, batch: &[Op<'_>]) -> Result<(), String> {
    let reservation = table.reserve(batch).map_err(|refusal| refusal.to_string())?;
    log.append(format!("{seqno}: {batch:?}"))?; // If this fails, the reservation is dropped, and its memory is returned.
    let written = reservation.apply_at(seqno);
    println!("{seqno}: {} writes took {} bytes", written.stored, written.bytes);
    Ok(())
}

fn main() -> Result<(), InsertError> {
    let table = Memtable::builder().max_memory_bytes(1 << 20).build();
    let mut log = Log(Vec::new());

    let first = [Op::Put { key: b"milk", value: b"2 litres" }, Op::Put { key: b"bread", value: b"1 loaf" }];
    assert_eq!(write(&table, &mut log, 1, &first), Ok(()));
    // If a batch writes a key several times, the last write counts.
    let second =
        [Op::Delete { key: b"bread" }, Op::Delete { key: b"milk" }, Op::Put { key: b"milk", value: b"1 litre" }];
    assert_eq!(write(&table, &mut log, 2, &second), Ok(()));
    assert_eq!(table.get_many(&["milk", "bread"], 2), [Lookup::Value(b"1 litre"), Lookup::Tombstone]);
    assert_eq!(table.get_many(&["milk", "bread"], 1), [Lookup::Value(b"2 litres"), Lookup::Value(b"1 loaf")]);

    // The log is full: nothing was stored, and the memory is free again.
    let before = table.memory_usage();
    let refused = write(&table, &mut log, 3, &[Op::Put { key: b"eggs", value: &[0; 1000] }]);
    assert_eq!((refused.is_err(), table.get(b"eggs", 3)), (true, Lookup::Absent));
    assert_eq!(table.memory_usage(), before);

    // The table is full: the reservation fails before anything is in the log. The engine freezes the table, and writes to the next one.
    let large = vec![0; 300 << 10];
    let batch = [&b"1"[..], b"2", b"3"].map(|key| Op::Put { key, value: &large });
    table.reserve(&batch)?.apply(10);
    assert_eq!(table.reserve(&batch).err(), Some(InsertError::Full));
    // This batch would fit into no table with this limit, so a new table would not help.
    assert_eq!(table.reserve(&[batch, batch].concat()).err(), Some(InsertError::TooLarge));

    // A batch of many keys is faster than single writes of its keys, because their searches are interleaved.
    let keys: Vec<[u8; 8]> = (0..256_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()).collect();
    let ops: Vec<Op<'_>> = keys.iter().map(|key| Op::Put { key, value: b"value" }).collect();
    let next = Memtable::new();
    assert_eq!(next.reserve(&ops)?.apply(20).stored, 256);
    assert_eq!(next.iter(u64::MAX).map(|version| version.seqno).max(), Some(275));
    Ok(())
}
