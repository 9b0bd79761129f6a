//! A table costs only as much as its contents: it reserves no address space before its first use, and reuses the pages of an earlier table.

#[cfg(target_os = "linux")]
use std::{env, fs, process::Command};

use std::sync::Arc;

use fastskip::{ConcurrentSkipList, InsertError, Lookup, Memtable, OwnedVersion, TablePool};

/// Address space and resident memory of this process, in bytes.
#[cfg(target_os = "linux")]
fn statm() -> (usize, usize) {
    let text = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: Vec<usize> = text.split_whitespace().map(|number| number.parse().unwrap()).collect();
    (pages[0] * 4096, pages[1] * 4096)
}

/// Runs the test `name` of this program alone in a process, with `limit` KiB of address space if given. Returns true in that process.
#[cfg(target_os = "linux")]
fn is_alone(name: &str, limit: Option<usize>) -> bool {
    const ALONE: &str = "FASTSKIP_ALONE";
    if env::var(ALONE).is_ok_and(|alone| alone == name) {
        return true;
    }
    let program = env::current_exe().unwrap();
    let limited = limit.map_or_else(String::new, |limit| format!("ulimit -v {limit}; "));
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{limited}exec \"$0\" --exact \"$1\" --test-threads 1 --nocapture")]);
    let output = shell.arg(program).arg(name).env(ALONE, name).output().unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{name} is no test");
    false
}

/// Catches tables that reserve addresses before anything is stored in them.
#[test]
#[cfg(target_os = "linux")]
fn untouched_tables_reserve_no_addresses() {
    if !is_alone("cheap::untouched_tables_reserve_no_addresses", None) {
        return;
    }
    let before = statm().0;
    let tables: Vec<_> = (0..1000).map(|_| (Memtable::new(), ConcurrentSkipList::new())).collect();
    let more = statm().0 - before;
    assert!(more < 64 << 20, "{more} bytes of addresses for {} tables", 2 * tables.len());
    assert!(tables[7].0.put(b"k", 1, b"v").is_ok());
    assert!(tables[7].1.insert(b"k", b"v"));
}

/// Catches reads that reserve addresses for an empty table.
#[test]
#[cfg(target_os = "linux")]
fn untouched_tables_that_are_read_reserve_no_addresses() {
    if !is_alone("cheap::untouched_tables_that_are_read_reserve_no_addresses", None) {
        return;
    }
    let tables: Vec<_> = (0..1000).map(|_| (Memtable::new(), Arc::new(ConcurrentSkipList::new()))).collect();
    let before = statm().0;
    for (memtable, list) in &tables {
        assert!(memtable.get(b"k", 1) == Lookup::Absent && memtable.get_version(b"k", 1).is_none());
        assert!(memtable.get_owned(b"k", 1).is_none() && memtable.get_many(&[b"k"], 1) == [Lookup::Absent]);
        assert!(memtable.is_empty() && memtable.memory_usage() == 0);
        assert!(!memtable.is_frozen() && !memtable.is_drained());
        assert!(memtable.iter(1).next().is_none() && memtable.range(b"a".., 1).next_back().is_none());
        assert!(memtable.owned_all_versions().next().is_none() && memtable.prefix(b"k", 1).next().is_none());
        let (mut cursor, mut owned) = (memtable.cursor(), memtable.owned_cursor());
        assert!(!cursor.seek(b"k", 1) && !cursor.seek_to_last() && cursor.prev_key().is_none() && !cursor.valid());
        assert!(!owned.seek_for_prev(b"k", 1) && owned.next().is_none() && owned.version().is_none());

        assert!(list.get(b"k").is_none() && !list.contains_key(b"k") && list.get_many(&[b"k"]) == [None]);
        assert!(list.is_empty() && list.memory_usage() == 0 && !list.is_sealed());
        assert!(list.iter().next().is_none() && list.snapshot().range(b"a"..).next_back().is_none());
        assert!(list.cursor_at(b"k").is_none() && list.cursor().next().is_none() && list.get_owned(b"k").is_none());
        assert!(list.owned_snapshot().range(..).next().is_none() && list.owned_cursor().prev().is_none());

        assert_eq!((memtable.stats().effective_max_memory_bytes, list.stats().len), (16 << 30, 0));
        assert!(format!("{memtable:?}{list:?}").contains("len: 0") && memtable.search_cost(b"k", 1).nodes == 0);
        assert_eq!(memtable.apply_at(&[], 1).map(|written| written.stored), Ok(0));
        assert_eq!((list.insert_batch::<&[u8], &[u8]>(&[]), list.try_delete(b"k")), (Ok(0), Ok(false)));
        list.freeze();
        assert!(memtable.freeze().is_drained() && memtable.is_frozen() && list.is_drained() && list.stats().is_frozen);
        assert_eq!(memtable.put(b"k", 1, b"v"), Err(InsertError::Frozen));
        assert_eq!(memtable.reserve(&[]).err(), Some(InsertError::Frozen));
        assert_eq!(
            (list.try_insert(b"k", b""), list.try_delete(b"k")),
            (Err(InsertError::Frozen), Err(InsertError::Frozen))
        );
        assert_eq!((memtable.stats().total_inserts, list.total_inserts()), (1, 1));
        memtable.validate();
        list.validate();
    }
    let more = statm().0 - before;
    assert!(more < 64 << 20, "{more} bytes of addresses for {} tables", 2 * tables.len());
}

/// Catches a reader of an untouched or an empty table that sees it empty for ever.
#[test]
fn readers_of_an_untouched_table_see_what_is_stored_before_a_step() {
    let empty = Memtable::builder().shards(1).try_build().unwrap();
    for memtable in [Memtable::new(), empty] {
        let (mut first, mut last) = (memtable.cursor(), memtable.cursor());
        let (mut owned, mut owned_last) = (memtable.owned_cursor(), memtable.owned_cursor());
        assert!(!first.seek_to_first() && !last.seek_to_last() && !owned_last.seek_to_last());
        // A search without a result leaves the cursor behind or before all later entries.
        let mut sought: [_; 4] = std::array::from_fn(|_| memtable.cursor());
        let [at, behind, at_or_before, before] = &mut sought;
        assert!(!at.seek(b"a", 9) && !behind.seek_after(b"a", 9));
        assert!(!at_or_before.seek_for_prev(b"z", 9) && !before.seek_before(b"z", 9));
        let (mut spent, mut iter, mut range) = (memtable.iter(9), memtable.iter(9), memtable.range(..b"z", 9));
        let (mut versions, mut lending) = (memtable.owned_all_versions(), memtable.owned_range(.., 9));
        assert!(spent.next().is_none());
        memtable.put(b"k", 1, b"v").unwrap();
        let version = memtable.get_version(b"k", 1);
        assert!(version.is_some());
        assert_eq!([first.next(), last.prev(), owned.next(), owned_last.prev()], [version; 4]);
        let mut stay = sought.clone();
        assert_eq!([stay[0].next(), stay[1].next(), stay[2].prev(), stay[3].prev()], [None; 4]);
        let [at, behind, at_or_before, before] = &mut sought;
        assert_eq!([at.prev(), behind.prev_key(), at_or_before.next(), before.next_key()], [version; 4]);
        assert_eq!([iter.next(), range.next_back(), lending.next_ref()], [version; 3]);
        assert_eq!(versions.next_back().as_ref().map(OwnedVersion::as_version), version);
        assert!(spent.next().is_none() && spent.next_back().is_none(), "once at its end, for ever");
    }
    let empty = ConcurrentSkipList::builder().shards(1).try_build().unwrap();
    for list in [ConcurrentSkipList::new(), empty].map(Arc::new) {
        let (mut first, mut last, mut owned) = (list.cursor(), list.cursor(), list.owned_cursor());
        assert!(!last.seek_to_last());
        let (mut iter, mut entries, snapshot) = (list.iter(), list.owned_range(..), list.snapshot());
        assert!(list.insert(b"k", b"v"));
        let entry = list.cursor().entry();
        assert!(entry.is_some() && snapshot.iter().next().is_none());
        assert_eq!([first.next(), last.prev(), owned.next(), iter.next_back(), entries.next_ref()], [entry; 5]);
    }
}

/// Catches small tables that take far more memory than their limit.
#[test]
#[cfg(target_os = "linux")]
fn small_tables_take_little_more_than_was_asked() {
    if !is_alone("cheap::small_tables_take_little_more_than_was_asked", None) {
        return;
    }
    let before = statm().1;
    let tables: Vec<_> =
        (0..500).map(|_| Memtable::builder().shards(1).expected_memory_bytes(4 << 10).build()).collect();
    for table in &tables {
        (0..30_u8).for_each(|key| assert!(table.put(&[key], 1, &[1; 100]).is_ok()));
    }
    let more = statm().1 - before;
    assert!(more < 500 * (24 << 10), "{more} bytes of memory");
    let before = statm().0;
    let limited = Memtable::builder().shards(1).max_memory_bytes(16 << 20).build();
    assert!(limited.put(b"k", 1, b"v").is_ok());
    let more = statm().0 - before;
    assert!(more < 28 << 20, "{more} bytes of addresses for a limit of 16 MiB");
}

/// Catches tables that take all addresses of a process, so that it can start no thread.
#[test]
#[cfg(target_os = "linux")]
fn tables_leave_room_for_threads_where_addresses_are_scarce() {
    if !is_alone("cheap::tables_leave_room_for_threads_where_addresses_are_scarce", Some(2 << 20)) {
        return;
    }
    let mut tables = Vec::new();
    for number in 0..24_u8 {
        let table = Memtable::builder().try_build().unwrap();
        assert!(table.put(&[number], 1, b"v").is_ok());
        let stats = table.stats();
        assert!(stats.max_memory_bytes == 0 && stats.effective_max_memory_bytes >= 128 << 10, "{stats:?}");
        tables.push(table);
        let stack = std::thread::Builder::new().stack_size(8 << 20);
        stack.spawn(|| ()).unwrap_or_else(|error| panic!("{number}: {error}")).join().unwrap();
    }
}

/// Catches tables that together take all addresses, or all mappings, so that the next allocation ends the process.
#[test]
#[cfg(target_os = "linux")]
fn twenty_thousand_tables_leave_addresses_to_the_process() {
    if !is_alone("cheap::twenty_thousand_tables_leave_addresses_to_the_process", None) {
        return;
    }
    let count = 20_000_u32;
    let tables: Vec<_> = (0..count).map(|_| Memtable::builder().shards(1).build()).collect();
    for (number, table) in tables.iter().enumerate() {
        assert!(table.put(&number.to_be_bytes(), 1, b"v").is_ok(), "table {number}");
    }
    assert!(statm().0 < 70 << 40, "{} bytes of addresses", statm().0);
    let effective = |table: usize| tables[table].stats().effective_max_memory_bytes;
    assert!(effective(0) > 15 << 30 && effective(tables.len() - 1) > 1000 << 20, "{}", effective(tables.len() - 1));
    std::thread::spawn(|| drop(vec![1_u8; 1 << 30])).join().unwrap();
    // A limit of 4 GiB is granted in full, although tables without a limit have taken many addresses.
    let limited = Memtable::builder().max_memory_bytes(4 << 30).try_build().unwrap();
    assert_eq!(limited.stats().effective_max_memory_bytes, 4 << 30);
    tables.iter().step_by(1000).for_each(Memtable::validate);
}

/// Catches tables that take the last addresses of a limited process, a refusal that lasts after addresses were returned, and a refusal with the wrong
/// reason.
#[test]
#[cfg(target_os = "linux")]
fn tables_are_full_and_open_again_where_addresses_end_and_come_back() {
    if !is_alone("cheap::tables_are_full_and_open_again_where_addresses_end_and_come_back", Some(1 << 20)) {
        return;
    }
    let builder = Memtable::builder().shards(1).max_memory_bytes(64 << 20);
    let held = Vec::<u8>::with_capacity((1 << 30) - statm().0 - (100 << 20));
    let short = builder.clone().build();
    assert!(short.put(b"k", 1, b"v").is_ok());
    let effective = short.stats().effective_max_memory_bytes;
    assert!((1 << 20..16 << 20).contains(&effective), "{effective}");
    assert_eq!(short.put(b"large", 1, &vec![0; 20 << 20]), Err(InsertError::Full), "another table would have room");
    // Ranges from the system, and ranges from the allocator.
    let limits = [0, 1 << 20, 64 << 10].into_iter().cycle().take(9000);
    let tables: Vec<_> = limits.map(|limit| Memtable::builder().shards(1).max_memory_bytes(limit).build()).collect();
    let results: Vec<_> = tables.iter().map(|table| table.put(b"k", 1, b"v").map(|written| written.stored)).collect();
    let full =
        results.iter().position(|result| *result == Err(InsertError::Full)).expect("there are not so many addresses");
    assert!(results[..full].iter().all(|result| *result == Ok(1)) && tables[full].is_empty());
    assert!(results.iter().all(|result| matches!(result, Ok(1) | Err(InsertError::Full))));
    let stack = std::thread::Builder::new().stack_size(8 << 20);
    stack.spawn(|| drop(vec![1_u8; 8 << 20])).unwrap().join().unwrap();
    drop(held);
    assert!(tables[full].put(b"k", 1, b"v").is_ok() && tables[full].stats().total_inserts == 2);
    let short = short.try_reset().unwrap();
    assert!(short.put(b"large", 1, &vec![0; 20 << 20]).is_ok());
    assert_eq!(short.stats().effective_max_memory_bytes, 64 << 20);
    short.validate();
}

/// Catches a pool that returns fresh memory, or none, and tables that show contents of an earlier table.
#[test]
#[cfg(target_os = "linux")]
fn pool_hands_a_dropped_tables_pages_to_the_next() {
    if !is_alone("cheap::pool_hands_a_dropped_tables_pages_to_the_next", None) {
        return;
    }
    // Its one shard fills each table to the limit, so the first table touches all pages.
    let pool = TablePool::new(1);
    let mut touched = 0;
    for round in 0..20_u64 {
        let table = Memtable::builder().shards(1).max_memory_bytes(16 << 20).huge_pages(false).pool(&pool).build();
        assert_eq!(table.get(&round.to_be_bytes(), u64::MAX), Lookup::Absent);
        let stored = (0_u64..).take_while(|key| table.put(&key.to_be_bytes(), round, &[round as u8; 1000]).is_ok());
        assert!(stored.count() > 15_000);
        assert_eq!(pool.len(), 0);
        assert!(table.iter(u64::MAX).all(|version| version.seqno == round && version.value[999] == round as u8));
        table.validate();
        drop(table);
        assert_eq!(pool.len(), 1);
        match round {
            0 => touched = statm().1,
            _ => assert!(statm().1 < touched + (4 << 20), "round {round}: fresh pages"),
        }
    }
    pool.clear();
    assert!(pool.is_empty() && statm().1 < touched - (12 << 20));
}

/// Catches memory that returns to the pool while a handle of its table lives, pools that keep too much, and memory of the wrong size.
#[test]
fn pool_keeps_what_it_was_told_to_and_hands_out_what_fits() {
    let pool = TablePool::new(2);
    let make = |limit| Memtable::builder().shards(1).max_memory_bytes(limit).pool(&pool).try_build().unwrap();
    let tables = [1 << 20, 1 << 20, 2 << 20, 4 << 20].map(make);
    let cursor = tables[0].owned_cursor();
    assert!(pool.is_empty());
    drop(tables);
    assert_eq!(pool.len(), 2, "the oldest of three makes room, and a cursor holds the fourth");
    let (larger, smaller) = (make(4 << 20), make(1 << 20));
    assert_eq!((larger.stats().effective_max_memory_bytes, pool.len()), (4 << 20, 1));
    drop((cursor, larger, smaller));
    assert_eq!(pool.len(), 2);
    let other = pool.clone();
    drop(pool);
    let list = ConcurrentSkipList::builder().pool(&other).max_memory_bytes(1 << 20).shards(1).build();
    assert_eq!(other.len(), 2);
    assert!(list.insert(b"k", b"v"));
    assert_eq!(other.len(), 1);
    let none = TablePool::new(0);
    drop(Memtable::builder().pool(&none).try_build().unwrap());
    assert!(none.is_empty() && format!("{none:?}").contains("len: 0"));
}

/// Catches a reset that happens while another handle exists, keeps entries, or leaves the table frozen.
#[test]
fn memtable_is_reset_by_its_only_handle() {
    let memtable = Memtable::builder().shards(2).max_entries(2).build();
    let mut memtable = memtable.try_reset().expect("an untouched one too");
    for round in 0..3 {
        assert!(memtable.put(b"a", round, b"1").is_ok());
        assert!(memtable.delete(b"b", round).is_ok());
        assert_eq!(memtable.put(b"c", round, b""), Err(InsertError::Full));
        let frozen = memtable.freeze();
        let cursor = frozen.owned_cursor();
        drop(memtable);
        let frozen = frozen.try_reset().unwrap_err();
        assert_eq!(frozen.len(), 2);
        drop(cursor);
        memtable = frozen.try_reset().unwrap();
        assert!(
            memtable.is_empty() && !memtable.is_frozen() && !memtable.is_drained() && !memtable.is_under_backpressure()
        );
        assert_eq!(memtable.iter(u64::MAX).count(), 0);
        memtable.validate();
    }
}

/// Catches an effective limit that differs from the one at which a table is full.
#[test]
fn effective_limit_is_the_configured_one_or_the_range() {
    let effective = |memtable: &Memtable| memtable.stats().effective_max_memory_bytes;
    assert_eq!(effective(&Memtable::builder().max_memory_bytes(1 << 20).build()), 1 << 20);
    // A size hint does not limit the table.
    let hinted = Memtable::builder().shards(1).expected_memory_bytes(4 << 10).build();
    (0..10_000_u32).for_each(|key| assert!(hinted.put(&key.to_be_bytes(), 1, &[0; 100]).is_ok()));
    assert!(effective(&hinted) > 1 << 24 && hinted.memory_usage() > 1 << 20, "{:?}", hinted.stats());
    hinted.validate();
}

/// For tables without a pool: catches memory that is never used again or kept without bound, and memory that is kept although addresses are scarce.
#[test]
#[cfg(target_os = "linux")]
fn the_shared_pool_keeps_small_tables_and_no_large_ones() {
    if !is_alone("cheap::the_shared_pool_keeps_small_tables_and_no_large_ones", None) {
        return;
    }
    let make = |bytes: usize| {
        let table = Memtable::builder().shards(1).build();
        (0..bytes / 1000).for_each(|key| assert!(table.put(&key.to_be_bytes(), 1, &[0; 1000]).is_ok()));
        table
    };
    let shared = TablePool::shared();
    assert!(shared.is_empty());
    drop(make(1 << 20));
    assert_eq!((shared.len(), shared.memory_usage()), (0, 0), "a large table");
    let before = statm().0;
    for _ in 0..100 {
        drop(make(10_000));
        assert_eq!(shared.len(), 1);
    }
    let tables: Vec<_> = (0..50).map(|_| make(10_000)).collect();
    assert_eq!(shared.len(), 0);
    drop(tables);
    assert_eq!(shared.len(), 8);
    let kept = shared.memory_usage();
    assert!((8 * 10_000..8 * (256 << 10)).contains(&kept), "{kept} bytes");
    shared.clear();
    assert!(shared.is_empty() && statm().0 < before + (64 << 20), "addresses are given back");
}
