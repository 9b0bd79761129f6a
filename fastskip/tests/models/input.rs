//! Decodes bytes into keys, values and choices. After the end of the input, every byte is zero. The meaning of the committed inputs depends on this
//! decoding: after a change here, make the inputs again (`fuzz/examples/seeds.rs`).

/// The rest of an input.
pub(crate) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// Mostly short keys of few distinct bytes, with zeros, so that keys share prefixes and are prefixes of each
    /// other. Some keys are longer than 255 bytes, the most that a link's partial key can count.
    pub(crate) fn key(&mut self) -> Vec<u8> {
        let shape = self.byte();
        let mut key = if shape >= 240 { vec![b'p'; 250 + usize::from(shape - 240)] } else { Vec::new() };
        key.extend((0..shape % 6).map(|_| [0, 1, b'a', b'b', 255][usize::from(self.byte() % 5)]));
        key
    }

    pub(crate) fn value(&mut self) -> Vec<u8> {
        let fill = self.byte();
        vec![fill; usize::from(fill) * 2]
    }

    /// One of `choices`.
    pub(crate) fn choose<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::from(self.byte()) % choices.len()]
    }

    /// Runs `write` on this thread or, one time in 32, on a new thread, which uses another shard.
    pub(crate) fn somewhere<R: Send>(&mut self, write: impl FnOnce() -> R + Send) -> R {
        if !self.byte().is_multiple_of(32) {
            return write();
        }
        let elsewhere = std::thread::scope(|scope| scope.spawn(write).join());
        elsewhere.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}
