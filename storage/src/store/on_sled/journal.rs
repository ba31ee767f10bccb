//! The journal of a partition's checkpoint: a plain file that is synced before sled hears of any of it.
//!
//! Each partition has two files, used in turn (generation odd, generation even). A file is a header block and the changes.
//! The header is written last, with a hash of the changes, so one `fdatasync` makes the checkpoint durable as a whole:
//! either header and changes agree, or the checkpoint never was. Once sled holds the changes (synced), the header is
//! marked as applied and the changes are cut off. The header stays behind as a *seal*: it says which checkpoint sled
//! must at least hold.

use std::collections::BTreeMap;
use std::io::{BufReader, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3Default;

use super::super::{MAX_KEY_BYTES, MAX_VALUE_BYTES, PartitionId, StoreError};
use super::frame::{Fields, PartitionState, Stamp};
use crate::files::File;

/// Where the changes begin. The header has a block of its own, so that rewriting it cannot tear the changes.
const BODY_START: u64 = 4096;
const MAGIC: [u8; 8] = *b"hcjourn1";
const HEADER_BYTES: usize = 63;
const BUFFER_BYTES: usize = 256 << 10;

const PUT: u8 = 1;
const DELETE: u8 = 2;
const FREE: u8 = 3;

/// What a checkpoint makes of one key.
#[derive(Debug, Clone, Copy)]
pub(super) enum Change {
    /// A new value, which lies at this offset of the journal.
    Put { stamp: Stamp, offset: u64 },
    /// No value any more.
    Delete,
}

/// All that a checkpoint changes: per key what counts in the end, and the long values that nothing refers to after it.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) keys: BTreeMap<Vec<u8>, Change>,
    pub(super) freed: Vec<Stamp>,
}

/// The first block of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    /// Whether sled holds the changes, synced.
    pub(super) applied: bool,
    pub(super) partition: PartitionId,
    /// What the partition amounts to with the changes.
    pub(super) state: PartitionState,
    body_len: u64,
    body_hash: u64,
}

impl Header {
    fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8] = u8::from(self.applied);
        bytes[9..11].copy_from_slice(&self.partition.prefix());
        bytes[11..19].copy_from_slice(&self.state.generation.to_be_bytes());
        bytes[19..27].copy_from_slice(&self.state.count.to_be_bytes());
        bytes[27..43].copy_from_slice(&self.state.digest.to_be_bytes());
        bytes[43..51].copy_from_slice(&self.body_len.to_be_bytes());
        bytes[51..59].copy_from_slice(&self.body_hash.to_be_bytes());
        let crc = crc32c::crc32c(&bytes[..59]);
        bytes[59..].copy_from_slice(&crc.to_be_bytes());
        bytes
    }

    fn decode(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let applied = match bytes[8] {
            0 => false,
            1 => true,
            _ => return None,
        };
        let mut fields = Fields(&bytes[9..]);
        let header = Self {
            applied,
            partition: PartitionId(u16::from_be_bytes(fields.take())),
            state: PartitionState {
                generation: u64::from_be_bytes(fields.take()),
                count: u64::from_be_bytes(fields.take()),
                digest: u128::from_be_bytes(fields.take()),
            },
            body_len: u64::from_be_bytes(fields.take()),
            body_hash: u64::from_be_bytes(fields.take()),
        };
        (bytes == &header.encode()).then_some(header)
    }
}

/// The file for this generation of the partition.
pub(super) fn path(dir: &Path, partition: PartitionId, generation: u64) -> PathBuf {
    let side = if generation % 2 == 1 { "odd" } else { "even" };
    dir.join(format!("partition-{:05}-{side}.journal", partition.number()))
}

/// The partition that a file in the journal directory belongs to.
pub(super) fn partition_of(name: &str) -> Option<PartitionId> {
    let number = name.strip_prefix("partition-")?.strip_suffix(".journal")?.split('-').next()?;
    number.parse().ok().map(PartitionId)
}

/// A journal being written.
pub(super) struct JournalWriter {
    out: BufWriter<File>,
    hash: Xxh3Default,
    len: u64,
}

impl JournalWriter {
    /// Starts over in the file at `path`; the caller syncs the directory if the file is new.
    pub(super) fn create(path: &Path) -> std::io::Result<Self> {
        let mut file = File::edit_or_create(path)?;
        file.seek(SeekFrom::Start(BODY_START))?;
        Ok(Self { out: BufWriter::with_capacity(BUFFER_BYTES, file), hash: Xxh3Default::new(), len: 0 })
    }

    fn append(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.out.write_all(bytes)?;
        self.hash.update(bytes);
        self.len += bytes.len() as u64;
        Ok(())
    }

    fn append_op(&mut self, op: u8, stamp: Option<&Stamp>, key: &[u8]) -> std::io::Result<()> {
        let mut head = [0; 25];
        head[0] = op;
        head[1..5].copy_from_slice(&(key.len() as u32).to_be_bytes());
        if let Some(stamp) = stamp {
            head[5..13].copy_from_slice(&stamp.generation.to_be_bytes());
            head[13..17].copy_from_slice(&stamp.ordinal.to_be_bytes());
            head[17..21].copy_from_slice(&stamp.len.to_be_bytes());
            head[21..25].copy_from_slice(&stamp.crc.to_be_bytes());
        }
        self.append(&head)?;
        self.append(key)
    }

    /// Notes a new value; returns where it lies.
    pub(super) fn put(&mut self, key: &[u8], stamp: &Stamp, value: &[u8]) -> std::io::Result<u64> {
        self.append_op(PUT, Some(stamp), key)?;
        let offset = BODY_START + self.len;
        self.append(value)?;
        Ok(offset)
    }

    /// Notes that a key goes.
    pub(super) fn delete(&mut self, key: &[u8]) -> std::io::Result<()> {
        self.append_op(DELETE, None, key)
    }

    /// Notes that the chunks of an older value are not needed any more.
    pub(super) fn free(&mut self, stamp: &Stamp) -> std::io::Result<()> {
        self.append_op(FREE, Some(stamp), &[])
    }

    /// Writes the header and syncs: from here on the checkpoint counts.
    pub(super) fn finish(mut self, partition: PartitionId, state: PartitionState) -> Result<Journal, Unfinished> {
        if let Err(error) = self.out.flush() {
            self.abandon();
            return Err(Unfinished { error, undecided: None });
        }
        let (file, _empty) = self.out.into_parts();
        let header = Header { applied: false, partition, state, body_len: self.len, body_hash: self.hash.digest() };
        match file.write_all_at(&header.encode(), 0).and_then(|()| file.sync_data()) {
            Ok(()) => Ok(Journal { file, header }),
            Err(error) => Err(Unfinished { error, undecided: Some(Undecided { file }) }),
        }
    }

    /// Gives the space back. What was written has no header and so means nothing.
    pub(super) fn abandon(self) {
        let (file, _unwritten) = self.out.into_parts();
        // Space that stays taken until the next checkpoint is no fault.
        let _ = file.set_len(BODY_START);
    }
}

/// A journal that could not be finished.
#[derive(Debug)]
pub(super) struct Unfinished {
    pub(super) error: std::io::Error,
    /// What has to be taken back, if the header may be on disk. `None`: the checkpoint never counted.
    pub(super) undecided: Option<Undecided>,
}

/// A journal whose header may be on disk or not, so that its checkpoint may count after a crash.
#[derive(Debug)]
pub(super) struct Undecided {
    file: File,
}

impl Undecided {
    /// Takes the header back; once this returns, the checkpoint never was. After an error it may be tried again.
    pub(super) fn take_back(&self) -> std::io::Result<()> {
        self.file.write_all_at(&[0; HEADER_BYTES], 0)?;
        self.file.sync_data()?;
        // Space that stays taken until the next checkpoint is no fault.
        let _ = self.file.set_len(BODY_START);
        Ok(())
    }
}

/// A journal with a sound header.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    header: Header,
}

impl Journal {
    /// Opens the file at `path`; `None` if there is no file or no sound header for `partition` in it.
    pub(super) fn open(path: &Path, partition: PartitionId) -> std::io::Result<Option<Self>> {
        let file = match File::edit(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = [0; HEADER_BYTES];
        match file.read_exact_at(&mut bytes, 0) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        }
        let header = Header::decode(&bytes).filter(|header| header.partition == partition);
        Ok(header.map(|header| Self { file, header }))
    }

    /// The header.
    pub(super) fn header(&self) -> &Header {
        &self.header
    }

    /// A value of this journal.
    pub(super) fn value(&self, key: &[u8], stamp: &Stamp, offset: u64) -> Result<Vec<u8>, StoreError> {
        let mut value = vec![0; stamp.len as usize];
        self.file.read_exact_at(&mut value, offset).map_err(StoreError::io("read a journal"))?;
        if stamp.fits(key, &value) { Ok(value) } else { Err(StoreError::damaged("a value of a journal")) }
    }

    /// Reads all changes; `None` if they aren't what the header says, as after a power cut in the middle of `finish`.
    pub(super) fn changes(&self) -> std::io::Result<Option<Changes>> {
        if self.header.body_len > 0 && self.file.len()? < BODY_START.saturating_add(self.header.body_len) {
            return Ok(None);
        }
        let mut file = &self.file;
        file.seek(SeekFrom::Start(BODY_START))?;
        let mut reader = OpReader {
            input: BufReader::with_capacity(BUFFER_BYTES, file.take(self.header.body_len)),
            hash: Xxh3Default::new(),
            at: BODY_START,
        };
        let mut changes = Changes::default();
        while reader.at < BODY_START + self.header.body_len {
            match reader.next(&mut changes) {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok((reader.hash.digest() == self.header.body_hash).then_some(changes))
    }

    /// Marks the journal as applied and cuts the changes off. Sled's own sync must have come before.
    pub(super) fn retire(&self) -> std::io::Result<()> {
        let header = Header { applied: true, ..self.header };
        self.file.write_all_at(&header.encode(), 0)?;
        self.file.set_len(BODY_START)
    }
}

struct OpReader<R> {
    input: R,
    hash: Xxh3Default,
    at: u64,
}

impl<R: Read> OpReader<R> {
    fn fill(&mut self, bytes: &mut [u8]) -> std::io::Result<()> {
        self.input.read_exact(bytes)?;
        self.hash.update(bytes);
        self.at += bytes.len() as u64;
        Ok(())
    }

    /// Reads one change; false if it is none.
    fn next(&mut self, changes: &mut Changes) -> std::io::Result<bool> {
        let mut head = [0; 25];
        self.fill(&mut head)?;
        let mut fields = Fields(&head[1..]);
        let key_len = u32::from_be_bytes(fields.take()) as usize;
        let stamp = Stamp {
            generation: u64::from_be_bytes(fields.take()),
            ordinal: u32::from_be_bytes(fields.take()),
            len: u32::from_be_bytes(fields.take()),
            crc: u32::from_be_bytes(fields.take()),
        };
        if key_len > MAX_KEY_BYTES || stamp.len as usize > MAX_VALUE_BYTES {
            return Ok(false);
        }
        let mut key = vec![0; key_len];
        self.fill(&mut key)?;
        match head[0] {
            PUT => {
                let offset = self.at;
                self.fill(&mut vec![0; stamp.len as usize])?;
                changes.keys.insert(key, Change::Put { stamp, offset });
            }
            DELETE => {
                changes.keys.insert(key, Change::Delete);
            }
            FREE => changes.freed.push(stamp),
            _ => return Ok(false),
        }
        Ok(true)
    }
}
