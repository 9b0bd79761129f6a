//! Stops a thread at a step, for the tests of other files.

use std::cell::{Cell, RefCell};
use std::sync::mpsc::{Receiver, Sender, channel};

/// The step at which to stop, the channel that reports the stop, and the channel that lets the thread continue.
type Stop = (u32, Sender<()>, Receiver<()>);

thread_local! {
    static STEPS: Cell<u32> = const { Cell::new(0) };
    static STOP_AT: RefCell<Option<Stop>> = const { RefCell::new(None) };
}

/// Counts a step, and waits there if the thread must stop at it.
pub(crate) fn step() {
    let now = STEPS.get() + 1;
    STEPS.set(now);
    let stop = STOP_AT.take();
    match stop {
        Some((at, stopped, go_on)) if at == now => {
            stopped.send(()).unwrap();
            go_on.recv().unwrap();
        }
        other => STOP_AT.set(other),
    }
}

/// The number of steps that `act` takes.
pub(crate) fn counted(act: impl FnOnce()) -> u32 {
    STEPS.set(0);
    act();
    STEPS.get()
}

/// Stops another thread at a step, and lets it continue.
pub(crate) struct Stopper {
    stopped: Receiver<()>,
    go_on: Sender<()>,
}

impl Stopper {
    /// A stopper, and the function that the other thread must call first.
    pub(crate) fn at(step: u32) -> (Self, impl FnOnce() + Send) {
        let (send_stopped, stopped) = channel();
        let (go_on, receive_go_on) = channel();
        let prepare = move || {
            STEPS.set(0);
            STOP_AT.set(Some((step, send_stopped, receive_go_on)));
        };
        (Self { stopped, go_on }, prepare)
    }

    /// Waits until the thread has stopped; false if the thread ended without stopping.
    pub(crate) fn wait(&self) -> bool {
        self.stopped.recv().is_ok()
    }

    pub(crate) fn go_on(&self) {
        self.go_on.send(()).unwrap();
    }
}
