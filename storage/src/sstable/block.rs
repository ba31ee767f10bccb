//! A block of a run: some pairs in the order of their keys, as one piece of a file.
//!
//! ```text
//! pair    shared   varint   how many bytes of its key are those of the key before
//!         rest     varint   how many follow
//!         key bytes
//!         value    varint   0: the key holds nothing any more; otherwise the length of the value + 1
//!         value bytes
//! ```

use crate::store::StoreError;

/// How large a block grows before it ends, in bytes. A value that is larger has a block to itself.
pub(crate) const BLOCK_BYTES: usize = 8 << 10;

/// Collects pairs.
#[derive(Debug, Default)]
pub(crate) struct BlockBuilder {
    pub(crate) bytes: Vec<u8>,
    last: Vec<u8>,
}

impl BlockBuilder {
    /// Adds a pair; its key is greater than the one before.
    pub(crate) fn push(&mut self, key: &[u8], value: Option<&[u8]>) {
        let shared = if self.bytes.is_empty() { 0 } else { common(&self.last, key) };
        put(&mut self.bytes, shared);
        put(&mut self.bytes, key.len() - shared);
        self.bytes.extend_from_slice(&key[shared..]);
        put(&mut self.bytes, value.map_or(0, |value| value.len() + 1));
        self.bytes.extend_from_slice(value.unwrap_or_default());
        self.last.clear();
        self.last.extend_from_slice(key);
    }

    /// Starts over.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
    }

    /// The greatest key so far, of all blocks.
    pub(crate) fn last_key(&self) -> &[u8] {
        &self.last
    }
}

fn common(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

fn put(bytes: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Goes through the pairs of a block.
#[derive(Debug, Default)]
pub(crate) struct BlockCursor {
    bytes: Vec<u8>,
    at: usize,
    key: Vec<u8>,
    /// Where the value lies; `None`: the key holds nothing any more.
    value: Option<std::ops::Range<usize>>,
}

impl BlockCursor {
    /// Stands before the first pair of a block.
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, ..Self::default() }
    }

    /// Goes to the next pair; false if there is none.
    pub(crate) fn advance(&mut self) -> Result<bool, StoreError> {
        if self.at >= self.bytes.len() {
            return Ok(false);
        }
        match self.read() {
            Some(()) => Ok(true),
            None => Err(StoreError::damaged("a block of a run does not hold what it should")),
        }
    }

    fn read(&mut self) -> Option<()> {
        let shared = self.number()?;
        let rest = self.span()?;
        if shared > self.key.len() {
            return None;
        }
        self.key.truncate(shared);
        self.key.extend_from_slice(self.bytes.get(rest)?);
        self.value = match self.number()? {
            0 => None,
            len => {
                let end = self.at.checked_add(len - 1).filter(|end| *end <= self.bytes.len())?;
                Some(std::mem::replace(&mut self.at, end)..end)
            }
        };
        Some(())
    }

    fn span(&mut self) -> Option<std::ops::Range<usize>> {
        let len = self.number()?;
        let end = self.at.checked_add(len).filter(|end| *end <= self.bytes.len())?;
        Some(std::mem::replace(&mut self.at, end)..end)
    }

    fn number(&mut self) -> Option<usize> {
        let mut number = 0_usize;
        for shift in (0..usize::BITS).step_by(7) {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            number |= usize::from(byte & 0x7f).checked_shl(shift)?;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// The key of the present pair.
    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    /// Its value; `None`: the key holds nothing any more.
    pub(crate) fn value(&self) -> Option<&[u8]> {
        self.value.clone().and_then(|value| self.bytes.get(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Pairs = Vec<(Vec<u8>, Option<Vec<u8>>)>;

    fn read(bytes: &[u8]) -> Result<Pairs, StoreError> {
        let mut cursor = BlockCursor::new(bytes.to_vec());
        let mut pairs = Vec::new();
        while cursor.advance()? {
            pairs.push((cursor.key().to_vec(), cursor.value().map(<[u8]>::to_vec)));
        }
        Ok(pairs)
    }

    #[test]
    fn pairs_come_back_and_cut_blocks_are_noticed() {
        let mut block = BlockBuilder::default();
        let pairs: Pairs = (0..300_u32)
            .map(|number| {
                let value = vec![number as u8; number as usize];
                (number.to_be_bytes()[..2 + number as usize % 3].to_vec(), (number % 5 != 0).then_some(value))
            })
            .collect();
        for (key, value) in &pairs {
            block.push(key, value.as_deref());
        }
        assert_eq!(read(&block.bytes).unwrap(), pairs);
        let ends: Vec<usize> = (1..block.bytes.len()).filter(|end| read(&block.bytes[..*end]).is_ok()).collect();
        assert!(ends.len() < pairs.len(), "only a cut between two pairs can pass: {}", ends.len());
        assert!(read(&[0xff; 40]).is_err());
    }
}
