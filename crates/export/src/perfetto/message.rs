//! Messages of protocol buffers, written field by field.

/// A message of protocol buffers, encoded.
#[derive(Clone, Debug, Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    /// The encoded bytes of the message.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    fn varint(&mut self, value: u64) {
        sched::packed::put(&mut self.0, value);
    }

    /// Adds a field with a number.
    pub(super) fn number(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field) << 3);
        self.varint(value);
    }

    /// Adds a number that may be negative.
    pub(super) fn signed(&mut self, field: u32, value: i64) {
        self.number(field, value.cast_unsigned());
    }

    /// Adds a number of eight bytes.
    pub(super) fn fixed(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field) << 3 | 1);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// Adds a field with bytes.
    pub(super) fn put(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// Adds a field with a text.
    pub(super) fn text(&mut self, field: u32, text: &str) {
        self.put(field, text.as_bytes());
    }

    /// Adds a field with a message, which `fill` fills.
    pub(super) fn message(&mut self, field: u32, fill: impl FnOnce(&mut Message)) {
        self.varint(u64::from(field) << 3 | 2);
        // Filled in place: most messages are so short that a byte has their length.
        let at = self.0.len();
        self.0.push(0);
        fill(self);
        let length = self.0.len() - at - 1;
        if length < 0x80 {
            self.0[at] = length as u8;
        } else {
            let mut prefix = Vec::with_capacity(10);
            sched::packed::put(&mut prefix, length as u64);
            self.0.splice(at..=at, prefix);
        }
    }

    /// Adds the fields of another message.
    pub(super) fn append(&mut self, other: &Message) {
        self.0.extend_from_slice(&other.0);
    }

    /// Removes all fields.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the description of the encoding.
    #[test]
    fn the_encoding_is_that_of_protocol_buffers() {
        let mut message = Message::default();
        message.number(1, 150);
        message.text(2, "testing");
        message.message(3, |inner| inner.number(1, 150));
        message.signed(1, -2);
        // A length of two bytes.
        message.message(4, |inner| inner.put(1, &[7; 198]));
        let mut expected = vec![0x08, 0x96, 0x01, 0x12, 0x07];
        expected.extend_from_slice(b"testing");
        expected.extend_from_slice(&[0x1a, 0x03, 0x08, 0x96, 0x01]);
        expected.extend_from_slice(&[0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
        expected.extend_from_slice(&[0x22, 0xc9, 0x01, 0x0a, 0xc6, 0x01]);
        expected.extend_from_slice(&[7; 198]);
        assert_eq!(message.bytes(), expected);
    }
}
