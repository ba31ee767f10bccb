//! The list of runs that count. It is replaced atomically after a run is durable; files that it doesn't name are
//! left-overs, and removed at open.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::ExternalIdsError;
use super::run::run_name;
use crate::codec;
use crate::files::{self, PRIVATE_FILE, create_private_dir, sync_dir, write_atomically};
use crate::format::Incarnation;

const FILE_NAME: &str = "RUNS";
const VERSION: u8 = 2;
/// The versions that can be read. The first did not say which tables are in it.
const VERSIONS: [codec::Version<Manifest>; 2] = [
    (VERSION, codec::payload),
    (1, |payload| {
        let (incarnation, next, runs) = codec::payload(payload)?;
        Ok(Manifest { incarnation, next, covered: 0, runs })
    }),
];

/// The list of runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Manifest {
    incarnation: u128,
    next: u64,
    /// The number of the last frozen table that is in it, and all before that.
    pub(super) covered: u64,
    pub(super) runs: BTreeSet<u64>,
}

/// Where a run lies.
pub(super) fn run_path(dir: &Path, id: u64) -> PathBuf {
    dir.join(run_name(id))
}

impl Manifest {
    /// Reads the list of `dir`, and removes what it doesn't name; begins one where there is nothing.
    pub(super) fn open(dir: &Path, incarnation: Incarnation) -> Result<Self, ExternalIdsError> {
        let manifest = match files::read(&dir.join(FILE_NAME)) {
            Ok(bytes) => Self::decode(&bytes)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                if !files(dir)?.is_empty() {
                    return Err(ExternalIdsError::damaged("there are runs but no list of them"));
                }
                let manifest = Self { incarnation: incarnation.number(), next: 1, covered: 0, runs: BTreeSet::new() };
                manifest.write(dir)?;
                manifest
            }
            Err(source) => return Err(ExternalIdsError::Io { action: "read its list of runs", source }),
        };
        if manifest.incarnation != incarnation.number() {
            let found = Incarnation::from_number(manifest.incarnation);
            return Err(ExternalIdsError::OtherIncarnation { found, expected: incarnation });
        }
        let named: BTreeSet<_> = manifest.runs.iter().map(|id| run_path(dir, *id)).collect();
        for path in files(dir)?.difference(&named) {
            files::remove_file(path).map_err(ExternalIdsError::io("remove a left-over"))?;
        }
        Ok(manifest)
    }

    fn decode(bytes: &[u8]) -> Result<Self, ExternalIdsError> {
        let unreadable = || ExternalIdsError::damaged("the list of runs is unreadable");
        let (body, crc) = bytes.split_last_chunk().ok_or_else(unreadable)?;
        if crc32c::crc32c(body) != u32::from_be_bytes(*crc) {
            return Err(unreadable());
        }
        codec::decode_any(body, &VERSIONS).map_err(|error| ExternalIdsError::damaged(format!("the list of runs: {error}")))
    }

    pub(super) fn write(&self, dir: &Path) -> Result<(), ExternalIdsError> {
        let mut bytes =
            codec::encode(VERSION, self).map_err(|error| ExternalIdsError::damaged(format!("the list of runs: {error}")))?;
        let crc = crc32c::crc32c(&bytes);
        bytes.extend_from_slice(&crc.to_be_bytes());
        write_atomically(&dir.join(FILE_NAME), &bytes, PRIVATE_FILE).map_err(ExternalIdsError::io("write its list of runs"))
    }

    /// A number for a run to be written. One that is never added is used again after the next open.
    pub(super) fn allocate(&mut self) -> u64 {
        let id = self.next;
        self.next += 1;
        id
    }
}

/// Removes all that belongs to an index, and begins an empty one. Runs that somebody still reads are removed once more when
/// they are let go of, so their numbers are not used again.
pub(super) fn begin_anew(dir: &Path, incarnation: Incarnation) -> Result<(), ExternalIdsError> {
    let remove = || -> std::io::Result<u64> {
        create_private_dir(dir)?;
        files::remove_if_there(&dir.join(FILE_NAME))?;
        let mut last = 0;
        for path in list(dir)? {
            let number = path.file_stem().and_then(|stem| u64::from_str_radix(stem.to_str()?, 16).ok());
            last = last.max(number.unwrap_or_default());
            files::remove_file(&path)?;
        }
        sync_dir(dir)?;
        Ok(last)
    };
    let last = remove().map_err(ExternalIdsError::io("remove its files"))?;
    Manifest { incarnation: incarnation.number(), next: last + 1, covered: 0, runs: BTreeSet::new() }.write(dir)
}

fn files(dir: &Path) -> Result<BTreeSet<PathBuf>, ExternalIdsError> {
    list(dir).map_err(ExternalIdsError::io("list its files"))
}

/// Runs and left-overs; not the list itself, nor what is none of ours.
fn list(dir: &Path) -> std::io::Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    if !dir.exists() {
        return Ok(found);
    }
    for path in files::list(dir)? {
        if path.extension().is_some_and(|extension| extension == "run" || extension == "tmp") {
            found.insert(path);
        }
    }
    Ok(found)
}
