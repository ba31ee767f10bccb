//! Changes of a partition on their way into runs.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::super::StoreError;
use super::{MANIFEST_VERSION, Manifest, Merged, Slot};
use crate::codec;
use crate::files::{remove_file, sync_dir};
use crate::sstable::reader::{Run, RunDir, RunName};
use crate::sstable::writer::RunWriter;

/// How much of a checkpoint is put in order before it is written.
const BUFFER_BYTES: usize = 1 << 20;

/// Changes of a partition on their way into runs. They cost little memory if they come in the order of their keys; in another
/// order they become more runs, the last of which counts.
pub(in crate::store) struct TableChanges {
    dir: RunDir,
    slot: Arc<Slot>,
    buffer: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    buffered: usize,
    /// Whether the keys of the buffer came in their order, each once.
    is_in_order: bool,
    writer: Option<RunWriter>,
    written: Vec<Run>,
    files: NewFiles,
}

/// Files that no manifest names yet; they go if none ever will.
struct NewFiles {
    dir: RunDir,
    names: Vec<RunName>,
}

impl Drop for NewFiles {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = remove_file(&self.dir.path_of(*name));
        }
    }
}

/// Changes that are durable, and count as soon as their manifest does.
pub(in crate::store) struct Prepared {
    pub(super) slot: Arc<Slot>,
    pub(super) runs: Vec<Arc<Run>>,
    pub(super) gone: Vec<Arc<Run>>,
    files: NewFiles,
    /// The manifest.
    pub(in crate::store) manifest: Vec<u8>,
}

impl Prepared {
    /// The manifest counts: its files stay.
    pub(super) fn keep(&mut self) {
        self.files.names.clear();
    }

    /// It may be that the manifest counts after a crash: its files stay until that is decided.
    pub(in crate::store) fn undecided(mut self) {
        self.slot.undecided().append(&mut self.files.names);
    }
}

impl TableChanges {
    /// Collects changes of a partition.
    pub(super) fn new(dir: RunDir, slot: Arc<Slot>) -> Self {
        let files = NewFiles { dir: dir.clone(), names: Vec::new() };
        Self { dir, slot, buffer: Vec::new(), buffered: 0, is_in_order: true, writer: None, written: Vec::new(), files }
    }

    /// How many runs it will be at least.
    pub(super) fn runs(&self) -> usize {
        self.written.len() + usize::from(self.writer.is_some() || !self.buffer.is_empty())
    }

    /// Sets the value of a key; `None`: it holds nothing any more.
    pub(in crate::store) fn set(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), StoreError> {
        self.buffered += key.len() + value.map_or(0, <[u8]>::len);
        self.is_in_order &= self.buffer.last().is_none_or(|(last, _)| last.as_slice() < key);
        self.buffer.push((key.to_vec(), value.map(<[u8]>::to_vec)));
        if self.buffered >= BUFFER_BYTES { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<(), StoreError> {
        self.buffered = 0;
        let mut buffer = std::mem::take(&mut self.buffer);
        if !std::mem::replace(&mut self.is_in_order, true) {
            // Of changes of one key the last one counts.
            buffer.reverse();
            buffer.sort_by(|(one, _), (other, _)| one.cmp(other));
            buffer.dedup_by(|(later, _), (kept, _)| later == kept);
        }
        let Some((first, _)) = buffer.first() else { return Ok(()) };
        let mut writer = match self.writer.take() {
            Some(writer) if writer.takes(first) => writer,
            before => {
                if let Some(before) = before {
                    self.written.push(before.finish()?);
                }
                let name = self.slot.name();
                self.files.names.push(name);
                RunWriter::create(&self.dir, name, None)?
            }
        };
        for (key, value) in &buffer {
            writer.push(key, value.as_deref())?;
        }
        self.writer = Some(writer);
        Ok(())
    }

    /// Makes the changes durable. `None`: there is nothing that a manifest would have to say.
    pub(in crate::store) fn prepare(mut self) -> Result<Option<Prepared>, StoreError> {
        self.write()?;
        if let Some(writer) = self.writer.take() {
            self.written.push(writer.finish()?);
        }
        let merged = self.slot.merged().clone();
        if self.written.is_empty() && merged.is_none() {
            return Ok(None);
        }
        sync_dir(self.dir.dir.path()).map_err(StoreError::io("sync a directory"))?;
        let mut runs = self.slot.runs().to_vec();
        let mut gone = Vec::new();
        if let Some(Merged { run, replaces }) = merged {
            // Lists grow at their end only, so what it replaces still stands side by side; nothing else will do.
            let stands = |part: &[Arc<Run>]| part.iter().map(|run| run.footer.name.id).eq(replaces.iter().copied());
            if let Some(place) = runs.windows(replaces.len().max(1)).position(stands) {
                gone = runs.splice(place..place + replaces.len(), [run]).collect();
            } else {
                run.remove_at_end();
                *self.slot.merged() = None;
            }
        }
        runs.extend(std::mem::take(&mut self.written).into_iter().map(Arc::new));
        let next = self.slot.next.load(Ordering::Relaxed);
        let manifest = Manifest { next, runs: runs.iter().map(|run| run.footer.name.id).collect() };
        let manifest = codec::encode(MANIFEST_VERSION, &manifest)
            .map_err(|error| StoreError::Io { action: "list its runs".into(), source: std::io::Error::other(error) })?;
        Ok(Some(Prepared { slot: self.slot, runs, gone, files: self.files, manifest }))
    }
}
