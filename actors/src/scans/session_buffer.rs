//! The events of one session, until it is known whether they count.

use std::io::{self, BufReader, Read, Seek, SeekFrom};

use headcount_storage::files::File;

use super::spill_dir::{SpillDir, SpillWriter};

const BUFFER_BYTES: usize = 16 << 10;

/// Records in the order in which they came; more than fit into memory are in a temporary file.
pub(super) struct SessionBuffer {
    scratch: SpillDir,
    /// Maximum number of bytes in memory. One record may exceed it.
    most: usize,
    /// Records after their lengths, behind those of the file.
    bytes: Vec<u8>,
    spilled: Option<SpillWriter>,
}

impl SessionBuffer {
    pub(super) fn new(scratch: &SpillDir, most: usize) -> Self {
        Self { scratch: scratch.clone(), most, bytes: Vec::new(), spilled: None }
    }

    /// Adds the record that consists of these parts.
    pub(super) fn push(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        let length = u32::try_from(bytes).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        if !self.bytes.is_empty() && self.bytes.len() + bytes > self.most {
            let mut spilled = self.spilled.take().map_or_else(|| self.scratch.create(), Ok)?;
            spilled.write(&self.bytes)?;
            self.spilled = Some(spilled);
            self.bytes.clear();
        }
        self.bytes.extend_from_slice(&length.to_le_bytes());
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part));
        Ok(())
    }

    /// Forgets all records.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.spilled = None;
    }

    /// Passes all records to `visit`, and forgets them.
    pub(super) fn drain(&mut self, mut visit: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        if let Some(spilled) = self.spilled.take() {
            let mut file: File = spilled.finish()?;
            let end = file.stream_position()?;
            file.seek(SeekFrom::Start(0))?;
            let mut file = BufReader::with_capacity(BUFFER_BYTES, file).take(end);
            let mut record = Vec::new();
            while file.limit() > 0 {
                let mut length = [0; 4];
                file.read_exact(&mut length)?;
                record.resize(u32::from_le_bytes(length) as usize, 0);
                file.read_exact(&mut record)?;
                visit(&record)?;
            }
        }
        let mut rest = &self.bytes[..];
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            let (record, after) = after.split_at(u32::from_le_bytes(*length) as usize);
            visit(record)?;
            rest = after;
        }
        self.bytes.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_in_order_and_few_are_in_memory() {
        let dir = tempfile::tempdir().unwrap();
        for (count, most) in [(0_usize, 100), (3, 100), (2_000, 100), (2_000, 1 << 20)] {
            let mut buffer = SessionBuffer::new(&SpillDir::new(dir.path()), most);
            buffer.push(&[b"forgotten"]).unwrap();
            buffer.clear();
            let records: Vec<Vec<u8>> = (0..count).map(|number| number.to_string().repeat(number % 40).into_bytes()).collect();
            for _ in 0..2 {
                for record in &records {
                    let (one, other) = record.split_at(record.len() / 2);
                    buffer.push(&[one, other]).unwrap();
                    assert!(buffer.bytes.len() <= most.max(4 + record.len()) + 4);
                }
                assert_eq!(buffer.spilled.is_some(), count > 100 && most == 100);
                let mut drained = Vec::new();
                let mut keep = |record: &[u8]| {
                    drained.push(record.to_vec());
                    Ok(())
                };
                buffer.drain(&mut keep).unwrap();
                assert_eq!(drained, records);
            }
        }
    }
}
