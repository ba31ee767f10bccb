//! What an artifact is put together from: sorted records, and text that waits for its place.

use std::io::{self, Read as _, Seek as _, SeekFrom, Write};

use headcount_actors::{SortedRecords, SpillDir, SpillWriter};
use headcount_storage::files::File;
use serde::Serialize;

const BUFFER_BYTES: usize = 64 << 10;

/// Sorted records that begin with a number.
pub(super) struct Numbered {
    sorted: SortedRecords,
    /// The next record, once it was read.
    next: Option<Option<Vec<u8>>>,
}

impl Numbered {
    pub(super) fn new(sorted: SortedRecords) -> Self {
        Self { sorted, next: None }
    }

    /// Returns the next record without its number, if that is `number`.
    pub(super) fn next_of(&mut self, number: u32) -> io::Result<Option<Vec<u8>>> {
        if self.next.is_none() {
            self.next = Some(self.sorted.next()?.map(<[u8]>::to_vec));
        }
        let is_its = |record: &Vec<u8>| record.starts_with(&number.to_be_bytes());
        if !self.next.as_ref().is_some_and(|next| next.as_ref().is_some_and(is_its)) {
            return Ok(None);
        }
        Ok(self.next.take().flatten().map(|mut record| record.split_off(size_of::<u32>())))
    }
}

/// Text in a temporary file.
pub(super) struct SpilledText {
    out: SpillWriter,
    bytes: u64,
}

impl SpilledText {
    pub(super) fn new(scratch: &SpillDir) -> io::Result<Self> {
        Ok(Self { out: scratch.create()?, bytes: 0 })
    }

    /// How much there is.
    pub(super) fn len(&self) -> u64 {
        self.bytes
    }

    /// Ends the text, so that it can be copied.
    pub(super) fn finish(self) -> io::Result<Copied> {
        Ok(Copied { file: self.out.finish()? })
    }
}

impl Write for SpilledText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)?;
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Text that waited.
pub(super) struct Copied {
    file: File,
}

impl Copied {
    /// Writes the bytes from `start` to `end` to `out`.
    pub(super) fn copy(&mut self, start: u64, end: u64, out: &mut dyn Write) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(start))?;
        let mut part = io::BufReader::with_capacity(BUFFER_BYTES, (&self.file).take(end - start));
        if io::copy(&mut part, out)? == end - start { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

/// Writes the items of a JSON list, one a line.
pub(super) struct List<'o, W: Write + ?Sized> {
    out: &'o mut W,
    is_first: bool,
}

impl<'o, W: Write + ?Sized> List<'o, W> {
    pub(super) fn new(out: &'o mut W) -> Self {
        Self { out, is_first: true }
    }

    /// Writes what stands before the next item.
    pub(super) fn next(&mut self) -> io::Result<&mut W> {
        self.out.write_all(if std::mem::take(&mut self.is_first) { b"\n" } else { b",\n" })?;
        Ok(self.out)
    }

    /// Writes an item.
    pub(super) fn push(&mut self, item: &impl Serialize) -> serde_json::Result<()> {
        serde_json::to_writer(self.next().map_err(serde_json::Error::io)?, item)
    }
}
