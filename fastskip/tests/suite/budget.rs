//! A budget that several tables share.

use std::thread;
#[cfg(feature = "std")]
use std::time::Duration;

use fastskip::{Builder, ConcurrentSkipList, InsertError, MemoryBudget, Memtable, Op};

fn memtable(budget: &MemoryBudget) -> Builder<Memtable> {
    Memtable::builder().shards(2).budget(budget)
}

/// Writes entries of about `len` bytes until one is refused. Returns their number.
fn fill(memtable: &Memtable, number: u64, len: usize) -> u64 {
    let keys = (0..).map(|at: u64| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) | number).to_be_bytes());
    keys.zip(0..).find_map(|(key, at)| memtable.put(&key, at, &vec![7; len]).err().map(|_| at)).unwrap()
}

/// Catches memory that is counted twice, not at all, or after its table is gone.
#[test]
fn budget_equals_what_its_tables_have_reserved() {
    let budget = MemoryBudget::new(8 << 20);
    let list = ConcurrentSkipList::builder().shards(2).budget(&budget).build();
    let mut tables: Vec<_> = (0..3).map(|_| memtable(&budget).max_memory_bytes(1 << 20).build()).collect();
    let sum = |tables: &[Memtable], list: &ConcurrentSkipList| {
        tables.iter().map(|table| table.stats().memory_reserved).sum::<usize>() + list.memory_reserved()
    };
    assert_eq!(budget.memory_reserved(), 0);
    for at in 0..3000_u64 {
        let table = &tables[at as usize % 3];
        let value = vec![1; at as usize % 700];
        let ops = [Op::Put { key: &at.to_be_bytes(), value: &value }, Op::Delete { key: b"k" }];
        match table.reserve(&ops) {
            Ok(reservation) if at % 4 != 0 => _ = reservation.apply(2 * at),
            refused_or_dropped => drop(refused_or_dropped),
        }
        assert!(list.insert(&at.to_be_bytes(), b""));
        assert_eq!(budget.memory_reserved(), sum(&tables, &list));
    }
    let reset = tables.swap_remove(2).try_reset().unwrap();
    tables.push(reset);
    assert_eq!(budget.memory_reserved(), sum(&tables, &list));
    drop((tables, list));
    assert_eq!(budget.memory_reserved(), 0);
}

/// Catches a refusal that is reported as permanent, pressure that stays when room has returned, and room that does not return.
#[test]
fn table_is_full_until_another_one_returns_its_memory() {
    let budget = MemoryBudget::new(1 << 20);
    let (first, second) = (memtable(&budget).build(), memtable(&budget).build());
    second.put(b"key", 1, b"").unwrap();
    assert!(fill(&first, 0, 1000) > 800, "idle chunks become smaller towards the end");
    assert_eq!(second.put(b"other", 2, &[0; 1 << 17]), Err(InsertError::Full));
    assert_eq!(second.put(b"other", 2, &[0; 1 << 20]), Err(InsertError::TooLarge), "no table of this budget has room");
    assert!(first.is_under_backpressure() && second.is_under_backpressure() && budget.is_under_backpressure(0.9));
    #[cfg(feature = "std")]
    assert!(!budget.wait_for_room(1 << 17, Duration::ZERO));
    first.validate();
    drop(first);
    assert!(!second.is_under_backpressure(), "the refusal was not for want of its own room");
    second.put(b"other", 2, &[0; 1 << 17]).unwrap();
    second.validate();
}

/// Catches threads that take the same room twice, and entries that exceed the budget; only blocks of the index may.
#[test]
fn budget_holds_while_threads_fill_several_tables() {
    for len in [0, 100] {
        let max = 1 << 20;
        let budget = MemoryBudget::new(max);
        let tables: Vec<_> = (0..3).map(|_| memtable(&budget).build()).collect();
        thread::scope(|threads| {
            for number in 0..6 {
                let table = &tables[number % 3];
                threads.spawn(move || fill(table, number as u64, len));
            }
        });
        tables.iter().for_each(Memtable::validate);
        let stats: Vec<_> = tables.iter().map(Memtable::stats).collect();
        let sum = |figure: fn(&fastskip::Stats) -> usize| stats.iter().map(figure).sum::<usize>();
        let reserved = budget.memory_reserved();
        assert_eq!(reserved, sum(|stats| stats.memory_reserved));
        assert!(reserved <= max + sum(|stats| stats.memory_index), "{reserved}");
        assert!(reserved <= max + 32 * sum(|stats| stats.entries), "{reserved}");
        assert!(sum(|stats| stats.memory_usage) > max * 9 / 10, "{stats:?}");
        drop(tables);
        assert_eq!(budget.memory_reserved(), 0);
    }
}

/// Catches a batch whose entries get no hints because another table has used up the budget after the batch was reserved.
#[test]
fn reserved_batch_is_indexed_although_the_budget_is_used_up() {
    let budget = MemoryBudget::new(4 << 20);
    let (reserved, other) = (memtable(&budget).build(), memtable(&budget).build());
    let keys: Vec<_> = (0..20_000_u32).map(|at| at.wrapping_mul(0x9e37_79b9).to_be_bytes()).collect();
    let ops: Vec<_> = keys.iter().map(|key| Op::Delete { key }).collect();
    let reservation = reserved.reserve(&ops).unwrap();
    fill(&other, 0, 100);
    reservation.apply(1);
    assert!(budget.memory_reserved() <= (4 << 20) + 32 * keys.len());
    assert!(keys.iter().all(|key| reserved.search_cost(key, u64::MAX).nodes < 32));
    reserved.validate();
}

/// Catches a waiting thread that is not woken when memory returns.
#[cfg(feature = "std")]
#[test]
fn waiting_thread_is_woken_by_a_dropped_table() {
    let budget = MemoryBudget::new(1 << 20);
    let table = memtable(&budget).build();
    fill(&table, 0, 1000);
    table.validate();
    thread::scope(|threads| {
        let waits = [1 << 20, 1 << 19].map(|bytes| {
            let budget = &budget;
            threads.spawn(move || budget.wait_for_room(bytes, Duration::MAX))
        });
        drop(table);
        assert!(waits.into_iter().all(|wait| wait.join().unwrap()));
    });
}
