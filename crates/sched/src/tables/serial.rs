//! Forms of values in the notes of a part of a trace.

/// Names in notes with every byte of theirs: a byte is written as the character with its number.
pub mod exact {
    use crate::event::Comm;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes a name.
    pub fn serialize<S: Serializer>(comm: &Comm, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&comm.as_bytes().iter().map(|byte| char::from(*byte)).collect::<String>())
    }

    /// Reads a name.
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Comm, D::Error> {
        let text = String::deserialize(d)?;
        let bytes: Result<Vec<u8>, _> = text.chars().map(|c| u8::try_from(u32::from(c))).collect();
        bytes.map(|bytes| Comm::new(&bytes)).map_err(|_| D::Error::custom("a name has characters up to \\u{ff}"))
    }
}

/// Lists in notes that are limited in length, since their elements take more memory than the text does.
pub mod bounded {
    use serde::de::{Error, SeqAccess, Visitor};
    use serde::{Deserialize, Deserializer};
    use std::fmt::{Formatter, Result as Written};
    use std::marker::PhantomData;

    /// Maximum number of elements of a list.
    pub const MOST: usize = 1 << 20;

    /// A visitor that reads a list of limited length.
    struct List<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut Formatter<'_>) -> Written {
            write!(f, "a list of at most {MOST} elements")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Vec<T>, A::Error> {
            let mut list = Vec::new();
            while let Some(element) = elements.next_element()? {
                if list.len() >= MOST {
                    return Err(A::Error::invalid_length(list.len(), &self));
                }
                list.push(element);
            }
            Ok(list)
        }
    }

    /// Reads a list; an error if it has more than [`MOST`] elements.
    pub fn deserialize<'de, D: Deserializer<'de>, T: Deserialize<'de>>(d: D) -> Result<Vec<T>, D::Error> {
        d.deserialize_seq(List(PhantomData))
    }
}
