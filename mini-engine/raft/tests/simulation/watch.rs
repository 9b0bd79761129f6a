//! [`InOrder`]: a watch channel that wakes its receivers in the order in which they wait. tokio's wakes them in a random order.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard};
use std::task::{Poll, Waker};

use openraft::async_runtime::watch::{RecvError, SendError, Watch, WatchReceiver, WatchSender};
use openraft::{OptionalSend, OptionalSync};

pub(crate) struct InOrder;

/// A sender or a receiver.
pub(crate) struct Side<T> {
    shared: Arc<Shared<T>>,
    is_sender: bool,
    seen: u64,
}

struct Shared<T> {
    value: RwLock<T>,
    state: Mutex<State>,
}

struct State {
    version: u64,
    /// The numbers of receivers and senders.
    sides: [usize; 2],
    waiting: Vec<Waker>,
}

impl<T> Side<T> {
    fn another(&self, is_sender: bool, seen: u64) -> Self {
        self.shared.state.lock().unwrap().sides[usize::from(is_sender)] += 1;
        Self { shared: Arc::clone(&self.shared), is_sender, seen }
    }

    fn version(&self) -> u64 {
        self.shared.state.lock().unwrap().version
    }

    fn wake(&self, state: impl FnOnce(&mut State)) {
        let waiting = {
            let mut own = self.shared.state.lock().unwrap();
            state(&mut own);
            std::mem::take(&mut own.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl<T> Clone for Side<T> {
    fn clone(&self) -> Self {
        self.another(self.is_sender, self.seen)
    }
}

impl<T> Drop for Side<T> {
    fn drop(&mut self) {
        self.wake(|state| state.sides[usize::from(self.is_sender)] -= 1);
    }
}

impl Watch for InOrder {
    type Sender<T: OptionalSend + OptionalSync> = Side<T>;
    type Receiver<T: OptionalSend + OptionalSync> = Side<T>;
    type Ref<'a, T: OptionalSend + 'a> = RwLockReadGuard<'a, T>;

    fn channel<T: OptionalSend + OptionalSync>(value: T) -> (Side<T>, Side<T>) {
        let state = Mutex::new(State { version: 0, sides: [1, 0], waiting: Vec::new() });
        let receiver =
            Side { shared: Arc::new(Shared { value: RwLock::new(value), state }), is_sender: false, seen: 0 };
        (receiver.another(true, 0), receiver)
    }
}

impl<T: OptionalSend + OptionalSync> WatchSender<InOrder, T> for Side<T> {
    fn send(&self, value: T) -> Result<(), SendError<T>> {
        if self.shared.state.lock().unwrap().sides[0] == 0 {
            return Err(SendError(value));
        }
        *self.shared.value.write().unwrap() = value;
        self.wake(|state| state.version += 1);
        Ok(())
    }

    fn send_if_modified<F: FnOnce(&mut T) -> bool>(&self, modify: F) -> bool {
        let is_modified = modify(&mut self.shared.value.write().unwrap());
        if is_modified {
            self.wake(|state| state.version += 1);
        }
        is_modified
    }

    fn borrow_watched(&self) -> RwLockReadGuard<'_, T> {
        self.shared.value.read().unwrap()
    }

    fn subscribe(&self) -> Side<T> {
        self.another(false, self.version())
    }
}

impl<T: OptionalSend + OptionalSync> WatchReceiver<InOrder, T> for Side<T> {
    async fn changed(&mut self) -> Result<(), RecvError> {
        poll_fn(|context| {
            let mut state = self.shared.state.lock().unwrap();
            if state.version != self.seen {
                self.seen = state.version;
                return Poll::Ready(Ok(()));
            }
            if state.sides[1] == 0 {
                return Poll::Ready(Err(RecvError(())));
            }
            if !state.waiting.iter().any(|waker| waker.will_wake(context.waker())) {
                state.waiting.push(context.waker().clone());
            }
            Poll::Pending
        })
        .await
    }

    fn borrow_watched(&self) -> RwLockReadGuard<'_, T> {
        self.shared.value.read().unwrap()
    }

    fn borrow_and_update(&mut self) -> RwLockReadGuard<'_, T> {
        self.seen = self.version();
        self.shared.value.read().unwrap()
    }
}
