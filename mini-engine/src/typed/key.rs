//! [`EncodeKey`] and [`DecodeKey`]: types as keys, in the order of the types.
//!
//! Numbers take their size, most significant byte first; of signed ones the sign bit is flipped. Text and byte strings end with `00 00`, and a zero
//! byte in them is written as `00 ff`, as in FoundationDB's tuples: so a shorter one sorts first, whatever follows. No encoding of a type is a prefix
//! of another one of that type.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A type whose values have an encoding that sorts as they do. A type of your own encodes its fields one after the other, and a variant as a byte
/// before its fields.
pub trait EncodeKey {
    /// Appends the encoding.
    fn encode(&self, key: &mut Vec<u8>);
}

/// A type that can be read from such an encoding.
pub trait DecodeKey: EncodeKey + Sized {
    /// Removes the encoding from the front of `key`; `None` if there is none of this type.
    fn decode(key: &mut &[u8]) -> Option<Self>;
}

impl<T: EncodeKey + ?Sized> EncodeKey for &T {
    fn encode(&self, key: &mut Vec<u8>) {
        (**self).encode(key);
    }
}

macro_rules! impl_number {
    ($($number:ty, $flipped:expr;)+) => {
        $(
            impl EncodeKey for $number {
                fn encode(&self, key: &mut Vec<u8>) {
                    key.extend_from_slice(&(self ^ $flipped).to_be_bytes());
                }
            }

            impl DecodeKey for $number {
                fn decode(key: &mut &[u8]) -> Option<Self> {
                    <[u8; size_of::<Self>()]>::decode(key).map(|bytes| Self::from_be_bytes(bytes) ^ $flipped)
                }
            }
        )+
    };
}

impl_number! { u8, 0; u16, 0; u32, 0; u64, 0; u128, 0; i8, i8::MIN; i16, i16::MIN; i32, i32::MIN; i64, i64::MIN; i128, i128::MIN; }

impl<const N: usize> EncodeKey for [u8; N] {
    fn encode(&self, key: &mut Vec<u8>) {
        key.extend_from_slice(self);
    }
}

impl<const N: usize> DecodeKey for [u8; N] {
    fn decode(key: &mut &[u8]) -> Option<Self> {
        let (bytes, rest) = key.split_first_chunk()?;
        *key = rest;
        Some(*bytes)
    }
}

impl EncodeKey for bool {
    fn encode(&self, key: &mut Vec<u8>) {
        key.push(u8::from(*self));
    }
}

impl DecodeKey for bool {
    fn decode(key: &mut &[u8]) -> Option<Self> {
        u8::decode(key).filter(|byte| *byte < 2).map(|byte| byte == 1)
    }
}

impl EncodeKey for [u8] {
    fn encode(&self, key: &mut Vec<u8>) {
        for part in self.split_inclusive(|byte| *byte == 0) {
            key.extend_from_slice(part);
            if part.ends_with(&[0]) {
                key.push(0xff);
            }
        }
        key.extend_from_slice(&[0, 0]);
    }
}

impl EncodeKey for Vec<u8> {
    fn encode(&self, key: &mut Vec<u8>) {
        self[..].encode(key);
    }
}

impl DecodeKey for Vec<u8> {
    fn decode(key: &mut &[u8]) -> Option<Self> {
        let mut bytes = Vec::new();
        loop {
            let zero = key.iter().position(|byte| *byte == 0)?;
            bytes.extend_from_slice(&key[..zero]);
            let end = *key.get(zero + 1)?;
            *key = &key[zero + 2..];
            match end {
                0 => return Some(bytes),
                0xff => bytes.push(0),
                _ => return None,
            }
        }
    }
}

impl EncodeKey for str {
    fn encode(&self, key: &mut Vec<u8>) {
        self.as_bytes().encode(key);
    }
}

impl EncodeKey for String {
    fn encode(&self, key: &mut Vec<u8>) {
        self.as_bytes().encode(key);
    }
}

impl DecodeKey for String {
    fn decode(key: &mut &[u8]) -> Option<Self> {
        String::from_utf8(Vec::decode(key)?).ok()
    }
}

/// `None` sorts first.
impl<T: EncodeKey> EncodeKey for Option<T> {
    fn encode(&self, key: &mut Vec<u8>) {
        self.is_some().encode(key);
        self.iter().for_each(|some| some.encode(key));
    }
}

impl<T: DecodeKey> DecodeKey for Option<T> {
    fn decode(key: &mut &[u8]) -> Option<Self> {
        match bool::decode(key)? {
            true => T::decode(key).map(Some),
            false => Some(None),
        }
    }
}

/// Seconds since 1970, rounded down, and nanoseconds.
impl EncodeKey for SystemTime {
    fn encode(&self, key: &mut Vec<u8>) {
        let nanos = match self.duration_since(UNIX_EPOCH) {
            Ok(after) => after.as_nanos() as i128,
            Err(before) => -(before.duration().as_nanos() as i128),
        };
        ((nanos.div_euclid(NANOS)) as i64, nanos.rem_euclid(NANOS) as u32).encode(key);
    }
}

const NANOS: i128 = 1_000_000_000;

impl DecodeKey for SystemTime {
    fn decode(key: &mut &[u8]) -> Option<Self> {
        let (seconds, nanos) = <(i64, u32)>::decode(key)?;
        let whole = Duration::from_secs(seconds.unsigned_abs());
        let second = if seconds < 0 { UNIX_EPOCH.checked_sub(whole) } else { UNIX_EPOCH.checked_add(whole) };
        second?.checked_add(Duration::from_nanos(nanos.into())).filter(|_| i128::from(nanos) < NANOS)
    }
}

/// The first fields of the tuple `K`, themselves a tuple. This trait is sealed.
pub trait LeadingFields<K>: EncodeKey + super::sealed::Sealed {}

macro_rules! impl_tuple {
    ($($field:ident)+) => {
        impl<$($field: EncodeKey),+> EncodeKey for ($($field,)+) {
            #[allow(non_snake_case, reason = "a field has the name of its type")]
            fn encode(&self, key: &mut Vec<u8>) {
                let ($($field,)+) = self;
                $($field.encode(key);)+
            }
        }

        impl<$($field: DecodeKey),+> DecodeKey for ($($field,)+) {
            fn decode(key: &mut &[u8]) -> Option<Self> {
                Some(($($field::decode(key)?,)+))
            }
        }

        impl<$($field),+> super::sealed::Sealed for ($($field,)+) {}
    };
}

impl_tuple!(A);
impl_tuple!(A B);
impl_tuple!(A B C);
impl_tuple!(A B C D);
impl_tuple!(A B C D E);
impl_tuple!(A B C D E F);

macro_rules! impl_leading {
    ($(($($lead:ident)+): $($rest:ident)+;)+) => {
        $(impl<$($lead: EncodeKey,)+ $($rest),+> LeadingFields<($($lead,)+ $($rest,)+)> for ($($lead,)+) {})+
    };
}

impl_leading! {
    (A): B; (A): B C; (A): B C D; (A): B C D E; (A): B C D E F;
    (A B): C; (A B): C D; (A B): C D E; (A B): C D E F;
    (A B C): D; (A B C): D E; (A B C): D E F;
    (A B C D): E; (A B C D): E F;
    (A B C D E): F;
}
