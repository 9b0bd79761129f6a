//! What does a reader pay to hold the current view for a moment: by `arc-swap`, by `crossbeam-epoch`, by a lock, by a copy in the thread?
//!
//! `cargo bench -p mini-engine --bench views`. Nanoseconds for one look: pin, read a number behind two pointers, let go. By one thread and
//! by two at once, alone and while another view is published a thousand times a second. Medians of nine rounds of the processor time of a
//! reading thread, so that other work on the machine does not count.

use std::fs;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, RwLock};
use std::thread;
use std::time::Duration;

use arc_swap::ArcSwap;
use crossbeam_epoch::{Atomic, Owned};

const LOOKS: u64 = 2_000_000;
const ROUNDS: usize = 9;

/// A view, as a reader sees it: a few pointers, behind which is what it reads.
type View = Vec<Arc<u64>>;

fn view(n: u64) -> View {
    vec![Arc::new(n), Arc::new(n + 1)]
}

trait Published: Sync {
    fn look(&self) -> u64;
    fn publish(&self, view: View);
}

impl Published for ArcSwap<View> {
    fn look(&self) -> u64 {
        *self.load()[1]
    }
    fn publish(&self, view: View) {
        self.store(Arc::new(view));
    }
}

/// As [`ArcSwap`], and the look takes a reference of its own: what an iterator does.
struct Full(ArcSwap<View>);

impl Published for Full {
    fn look(&self) -> u64 {
        *self.0.load_full()[1]
    }
    fn publish(&self, view: View) {
        self.0.publish(view);
    }
}

struct Epoch(Atomic<View>);

impl Published for Epoch {
    fn look(&self) -> u64 {
        let guard = crossbeam_epoch::pin();
        let view = self.0.load(Ordering::Acquire, &guard);
        // SAFETY: the pointer is never null, and what it points to is destroyed after every guard of before its exchange is gone.
        let view = unsafe { view.deref() };
        *view[1]
    }
    fn publish(&self, view: View) {
        let guard = crossbeam_epoch::pin();
        let old = self.0.swap(Owned::new(view), Ordering::AcqRel, &guard);
        // SAFETY: nobody can load it any more, and it is exchanged once.
        unsafe { guard.defer_destroy(old) };
    }
}

impl Published for RwLock<Arc<View>> {
    fn look(&self) -> u64 {
        *self.read().unwrap()[1]
    }
    fn publish(&self, view: View) {
        *self.write().unwrap() = Arc::new(view);
    }
}

/// Nanoseconds that this thread has had a processor.
fn processor_time() -> u64 {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").expect("a system that tells");
    stat.split(' ').next().and_then(|field| field.parse().ok()).expect("a number")
}

fn nanos(published: &dyn Published, threads: usize, publishing: bool) -> f64 {
    let (begin, done) = (Barrier::new(threads), AtomicBool::new(false));
    thread::scope(|scope| {
        if publishing {
            scope.spawn(|| {
                for n in 0.. {
                    if done.load(Ordering::Relaxed) {
                        return;
                    }
                    published.publish(view(n));
                    thread::sleep(Duration::from_millis(1));
                }
            });
        }
        let reader = || {
            begin.wait();
            let before = processor_time();
            for _ in 0..LOOKS {
                black_box(black_box(published).look());
            }
            (processor_time() - before) as f64 / LOOKS as f64
        };
        let readers: Vec<_> = (0..threads).map(|_| scope.spawn(reader)).collect();
        let nanos: Vec<f64> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
        done.store(true, Ordering::Relaxed);
        nanos.iter().sum::<f64>() / threads as f64
    })
}

fn main() {
    let subjects: [(&str, Box<dyn Published>); 4] = [
        ("arc-swap, load", Box::new(ArcSwap::from_pointee(view(0)))),
        ("arc-swap, load_full", Box::new(Full(ArcSwap::from_pointee(view(0))))),
        ("crossbeam-epoch, pin", Box::new(Epoch(Atomic::new(view(0))))),
        ("RwLock, read", Box::new(RwLock::new(Arc::new(view(0))))),
    ];
    let settings = [(1, false), (2, false), (1, true), (2, true)];
    println!("{:24} {:>10} {:>10} {:>12} {:>12}", "ns a look", "1 thread", "2 threads", "1, publish", "2, publish");
    let mut all = vec![[const { Vec::new() }; 4]; subjects.len()];
    for _ in 0..ROUNDS {
        for ((_, subject), found) in subjects.iter().zip(&mut all) {
            for (&(threads, publishing), found) in settings.iter().zip(found) {
                found.push(nanos(&**subject, threads, publishing));
            }
        }
    }
    for ((name, _), found) in subjects.iter().zip(&mut all) {
        let medians = found.each_mut().map(|rounds| {
            rounds.sort_by(f64::total_cmp);
            rounds[ROUNDS / 2]
        });
        println!("{name:24} {:10.1} {:10.1} {:12.1} {:12.1}", medians[0], medians[1], medians[2], medians[3]);
    }
}
