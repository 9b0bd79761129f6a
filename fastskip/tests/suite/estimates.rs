//! Estimates of ranges, beside the figures that iteration gives.

use std::ops::Bound;
use std::thread;

use fastskip::{ConcurrentSkipList, Duplicates, Memtable};

const KEYS: u64 = 60_000;

fn mixed(number: u64) -> u64 {
    let x = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) ^ number
}

/// Orders of writes: the key of each.
const ORDERS: [fn(u64) -> Vec<u8>; 7] = [
    |at| mixed(at).to_be_bytes().to_vec(),
    |at| at.to_be_bytes().to_vec(),
    |at| (KEYS - at).to_be_bytes().to_vec(),
    // Half of the keys in order, so that their blocks are full, and half of them random.
    |at| if at % 2 == 0 { at } else { mixed(at) | 1 << 63 }.to_be_bytes().to_vec(),
    // Towards the middle from both sides, which leaves blocks half full.
    |at| if at % 2 == 0 { at } else { 2 * KEYS - at }.to_be_bytes().to_vec(),
    // Long prefixes, and few keys with many versions.
    |at| format!("/home/user/{}/{:05}", mixed(at) % 40, mixed(at) % 100_000).into_bytes(),
    |at| (mixed(at) % 400).to_be_bytes().to_vec(),
];

/// Catches an estimate that is far from the figure, or not exact for a short range.
#[test]
fn estimates_are_near_the_figures_in_every_order_of_writes() {
    for (order, key) in ORDERS.iter().enumerate() {
        for (threads, most) in [(1, 1.25), (4, 2.0)] {
            let memtable = Memtable::new();
            thread::scope(|scope| {
                for thread in 0..threads {
                    let put = |at| _ = memtable.put(&key(at), at, &vec![1; mixed(at) as usize % 64]).unwrap();
                    scope.spawn(move || (thread..KEYS).step_by(threads as usize).for_each(put));
                }
            });
            let keys: Vec<_> = memtable.all_versions().map(|version| version.key).collect();
            let mean = memtable.approximate_bytes(..) as f64 / memtable.approximate_len(..) as f64;
            let mut worst = (1.0, 0, 0);
            for draw in 0..300 {
                let [a, b] = [2 * draw, 2 * draw + 1].map(|at| keys[mixed(at) as usize % keys.len()]);
                let [from, to] = [a, b].map(|bound| keys.partition_point(|key| *key < bound));
                let (len, bytes) = (memtable.approximate_len(a..b), memtable.approximate_bytes(a..b));
                let figure = to.saturating_sub(from);
                if figure <= 128 {
                    assert_eq!(len, figure, "seen from {from} to {to}");
                    continue;
                }
                let ratio = (len as f64 / figure as f64).max(figure as f64 / len as f64);
                worst = if ratio > worst.0 { (ratio, len, figure) } else { worst };
                assert!((0.8..1.25).contains(&(bytes as f64 / len as f64 / mean)), "{bytes} bytes of {len}");
            }
            println!("order {order}, {threads} threads: {worst:?}");
            assert!(worst.0 < most, "order {order}, {threads} threads: {worst:?}");
            memtable.validate();
        }
    }
}

/// Catches a bound that counts on the wrong side, versions that are not counted, and a value that counts after it was replaced.
#[test]
fn bounds_count_as_in_a_range() {
    let list = ConcurrentSkipList::new();
    let memtable = Memtable::builder().duplicates(Duplicates::Replace).build();
    assert_eq!((list.approximate_len(..), memtable.approximate_bytes(..)), (0, 0));
    for key in 0..20_u8 {
        assert!(list.insert(&[key], b""));
        for seqno in [0, 1, u64::MAX, 1] {
            memtable.put(&[key], seqno, b"").unwrap();
        }
    }
    let ends = |key: u8| [Bound::Included([key]), Bound::Excluded([key]), Bound::Unbounded];
    for bounds in ends(5).into_iter().flat_map(|lower| ends(9).map(|upper| (lower, upper))) {
        let keys = list.range(bounds).count();
        assert_eq!((list.approximate_len(bounds), memtable.approximate_len(bounds)), (keys, 3 * keys), "{bounds:?}");
    }
    assert_eq!((list.approximate_len([9]..[5]), list.approximate_len([5]..[5])), (0, 0));
    let before = memtable.approximate_bytes(..);
    memtable.put(&[7], 1, &[1; 800]).unwrap();
    assert!((800..816).contains(&(memtable.approximate_bytes(..) - before)));
}
