//! The file with the list of an index's tables.

use std::path::Path;
use std::sync::Arc;

use super::error::ExternalIdsError;
use super::memtable::LAYOUT;
use crate::files::{self, Dir, OpenFiles, PRIVATE_FILE, create_private_dir, sync_dir, write_atomically};
use crate::format::Incarnation;
use crate::sstable::{Manifest, MergeCursor, TableSet, TableSpace, open_copies, remove_unnamed, table_files};

const FILE_NAME: &str = "MANIFEST";
const TMP_NAME: &str = "MANIFEST.tmp";

/// Opens the tables of the index in `dir`, and removes files that are not in its manifest. Without
/// a manifest, begins an empty index.
pub(super) fn open(dir: &Path, incarnation: Incarnation) -> Result<(TableSet, Manifest), ExternalIdsError> {
    let held = Arc::new(Dir::open(dir).map_err(ExternalIdsError::io("open its directory"))?);
    let manifest = match files::read_if_there(&dir.join(FILE_NAME)).map_err(ExternalIdsError::io("read its manifest"))? {
        Some(bytes) => decode(&bytes, incarnation)?,
        None => {
            if !table_files(dir)?.is_empty() {
                return Err(ExternalIdsError::damaged("there are tables but no manifest"));
            }
            let manifest = Manifest { next: 1, tables: Vec::new() };
            write(dir, incarnation, &manifest)?;
            manifest
        }
    };
    let space = TableSpace {
        dir: held,
        open_files: OpenFiles::of_process(),
        layout: LAYOUT,
        owner: incarnation.number(),
        stem: String::new(),
        key_prefix: Vec::new(),
    };
    let set = TableSet::open(space, &manifest)?;
    remove_unnamed(dir, &set.paths())?;
    files::remove_if_there(&dir.join(TMP_NAME)).map_err(ExternalIdsError::io("remove a leftover file"))?;
    Ok((set, manifest))
}

/// Replaces the tables of the index in `dir` by a single table with the entries of copied tables.
pub(super) fn replace(dir: &Path, incarnation: Incarnation, copies: &Path, ids: &[u64]) -> Result<(), ExternalIdsError> {
    let copied = open_copies(copies, (incarnation.number(), LAYOUT, Vec::new()), ids)?;
    let set = match open(dir, incarnation) {
        Err(ExternalIdsError::Damaged { .. } | ExternalIdsError::OtherIncarnation { .. }) => {
            reset(dir, incarnation)?;
            open(dir, incarnation)?.0
        }
        opened => opened?.0,
    };
    let mut writer = set.create(Some(copied.iter().map(|table| table.count()).sum()))?;
    let mut entries = MergeCursor::seek(&copied, &[])?;
    while entries.advance()? {
        writer.push(entries.key(), entries.value())?;
    }
    let table = writer.finish()?;
    let new = (table.count() > 0).then(|| table.id());
    let next = set.propose(Vec::new()).manifest.next;
    write(dir, incarnation, &Manifest { next, tables: new.into_iter().collect() })?;
    // An empty table leaves no file when it is dropped.
    if new.is_some() {
        table.keep();
    }
    drop((table, set));
    // Removes the files of the old tables.
    open(dir, incarnation).map(drop)
}

/// Writes the manifest: the incarnation, the list, and a checksum.
pub(super) fn write(dir: &Path, incarnation: Incarnation, manifest: &Manifest) -> Result<(), ExternalIdsError> {
    let mut bytes = incarnation.number().to_be_bytes().to_vec();
    bytes.extend_from_slice(&manifest.encode()?);
    bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_be_bytes());
    // The names of the tables become durable before the manifest that lists them.
    sync_dir(dir)
        .and_then(|()| write_atomically(&dir.join(FILE_NAME), &bytes, PRIVATE_FILE))
        .map_err(ExternalIdsError::io("write its manifest"))
}

fn decode(bytes: &[u8], expected: Incarnation) -> Result<Manifest, ExternalIdsError> {
    let unreadable = || ExternalIdsError::damaged("the manifest is unreadable");
    let (body, crc) = bytes.split_last_chunk().ok_or_else(unreadable)?;
    if crc32c::crc32c(body) != u32::from_be_bytes(*crc) {
        return Err(unreadable());
    }
    let (incarnation, manifest) = body.split_first_chunk().ok_or_else(unreadable)?;
    let found = Incarnation::from_number(u128::from_be_bytes(*incarnation));
    if found != expected {
        return Err(ExternalIdsError::OtherIncarnation { found, expected });
    }
    Ok(Manifest::decode(manifest)?)
}

/// Removes an index and begins an empty one. Tables that still have readers are removed when they
/// are closed, so their numbers are not reused.
pub(super) fn reset(dir: &Path, incarnation: Incarnation) -> Result<(), ExternalIdsError> {
    let prepare = || create_private_dir(dir).and_then(|()| files::remove_if_there(&dir.join(FILE_NAME)));
    prepare().map_err(ExternalIdsError::io("remove its files"))?;
    let mut last = 0;
    for path in table_files(dir)?.into_keys() {
        let number = path.file_stem().and_then(|stem| u64::from_str_radix(stem.to_str()?, 16).ok());
        last = last.max(number.unwrap_or_default());
        files::remove_file(&path).map_err(ExternalIdsError::io("remove its files"))?;
    }
    write(dir, incarnation, &Manifest { next: last + 1, tables: Vec::new() })
}
