//! The content of a checkpoint: keys and values in a few large blocks, since there may be hundreds of thousands.

/// How large a block grows, in bytes.
const BLOCK_BYTES: usize = 1 << 20;

#[derive(Debug, Clone, Copy)]
struct Span {
    block: u32,
    start: u32,
    key: u32,
    /// `None`: the key is to be deleted.
    value: Option<u32>,
}

/// Keys, each with what it holds from now on.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    blocks: Vec<Vec<u8>>,
    spans: Vec<Span>,
}

impl Entries {
    /// Adds a key, and the value that `write` appends.
    pub(crate) fn put<E>(&mut self, key: &[u8], write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
        let (block, bytes) = self.block();
        let start = bytes.len();
        bytes.extend_from_slice(key);
        write(bytes)?;
        let value = bytes.len() - start - key.len();
        self.spans.push(Span { block, start: narrow(start), key: narrow(key.len()), value: Some(narrow(value)) });
        Ok(())
    }

    /// Adds a key that holds nothing any more.
    pub(crate) fn delete(&mut self, key: &[u8]) {
        let (block, bytes) = self.block();
        let start = bytes.len();
        bytes.extend_from_slice(key);
        self.spans.push(Span { block, start: narrow(start), key: narrow(key.len()), value: None });
    }

    /// What they take in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.blocks.iter().map(Vec::capacity).sum::<usize>() + self.spans.capacity() * size_of::<Span>()
    }

    /// All of them, in the order in which they were added, or in that of [`Entries::sort`].
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        self.spans.iter().filter_map(|span| {
            let rest = self.blocks.get(span.block as usize)?.get(span.start as usize..)?;
            let (key, rest) = rest.split_at_checked(span.key as usize)?;
            Some((key, span.value.and_then(|value| rest.get(..value as usize))))
        })
    }

    /// Brings them into the order of their keys, in which the store takes them most easily. Entries of one key stay in theirs.
    pub(crate) fn sort(&mut self) {
        let Self { blocks, spans } = self;
        let key = |span: &Span| {
            let rest = blocks.get(span.block as usize).and_then(|block| block.get(span.start as usize..));
            rest.and_then(|rest| rest.get(..span.key as usize)).unwrap_or_default()
        };
        spans.sort_by(|one, other| key(one).cmp(key(other)));
    }

    /// The block that the next entry goes into.
    fn block(&mut self) -> (u32, &mut Vec<u8>) {
        if self.blocks.last().is_none_or(|block| block.len() >= BLOCK_BYTES) {
            self.blocks.push(Vec::new());
        }
        let number = narrow(self.blocks.len() - 1);
        let last = self.blocks.len() - 1;
        (number, &mut self.blocks[last])
    }
}

/// Lengths within a block and its last entry: the store takes no value of more than 64 MiB.
fn narrow(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_comes_back_in_order() {
        let mut entries = Entries::default();
        let value = |number: u32| vec![number as u8; number as usize * 7 % 5000];
        for number in 0..2_000u32 {
            let key = number.to_be_bytes();
            if number % 10 == 3 {
                entries.delete(&key);
                continue;
            }
            let written: Result<(), ()> = entries.put(&key, |bytes| {
                bytes.extend(value(number));
                Ok(())
            });
            written.unwrap();
        }
        assert!(entries.blocks.len() > 2);
        for (number, (key, held)) in (0u32..).zip(entries.iter()) {
            assert_eq!(key, number.to_be_bytes());
            assert_eq!(held, (number % 10 != 3).then(|| value(number)).as_deref());
        }
        assert_eq!(entries.iter().count(), 2_000);
        entries.delete(&7u32.to_be_bytes());
        entries.delete(&[]);
        entries.sort();
        let keys: Vec<_> = entries.iter().map(|(key, value)| (key.to_vec(), value.is_some())).collect();
        assert!(keys.is_sorted_by_key(|(key, _)| key.clone()));
        assert_eq!(
            keys[8..10],
            [7, 7].map(|number: u32| number.to_be_bytes().to_vec()).into_iter().zip([true, false]).collect::<Vec<_>>()
        );
    }
}
