//! The part of the log that imports need.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use headcount_domain::Position;
use headcount_storage::files;
use headcount_storage::log::{LogHold, ReadLog};
use parking_lot::Mutex;
use serde::Deserialize;

/// The directory of the journals of imports.
const JOURNALS: &str = "imports";

/// Reads the log, and keeps the part with marks that import journals lack.
#[derive(Debug)]
pub(crate) struct ImportLog {
    pub(crate) log: Arc<dyn ReadLog>,
    kept: Mutex<Option<LogHold>>,
}

impl ImportLog {
    /// Keeps the marks that the journals of killed imports lack. Nothing may be removed from the
    /// log before this call.
    pub(crate) fn new(log: Arc<dyn ReadLog>, data_dir: &Path) -> Self {
        let kept = lacking_after(&data_dir.join(JOURNALS)).and_then(|position| log.hold_after(position));
        Self { log, kept: Mutex::new(kept) }
    }

    /// Keeps the events after `position`, replacing the former position; `None` keeps nothing.
    pub(crate) fn keep_after(&self, position: Option<Position>) {
        let hold = position.and_then(|position| self.log.hold_after(position));
        // The former hold is dropped after the new one exists.
        let _former = std::mem::replace(&mut *self.kept.lock(), hold);
    }
}

/// The part of a journal's second line that concerns the log.
#[derive(Deserialize)]
struct JournalLine {
    reached: JournalReached,
}

#[derive(Deserialize)]
struct JournalReached {
    log_after: Option<Position>,
}

/// Returns the position after which the log may have marks that a journal lacks.
fn lacking_after(journals: &Path) -> Option<Position> {
    let after = |path: &PathBuf| {
        let text = files::read_if_there(path).ok()??;
        let second = text.split(|byte| *byte == b'\n').nth(1)?;
        // No import continues from an unreadable journal.
        serde_json::from_slice::<JournalLine>(second).ok()?.reached.log_after
    };
    files::list(journals).ok()?.iter().filter_map(after).min()
}
