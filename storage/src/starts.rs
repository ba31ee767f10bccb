//! The file `starts` of a data directory: its last starts, each with a random number and the last
//! position at that moment.
//!
//! ```text
//! headcount starts
//! 5f0c3a9b11d0e2f7 0
//! 81b2c7d6e5f40312 4711
//! crc32c 0badcafe
//! ```
//!
//! A position alone does not identify an event after a directory is replaced by an earlier copy:
//! other events get the same positions. A position together with the number of its start does: the
//! list of the copy lacks the number, or its next start began before the position. Backups do not
//! have this file, so a restored directory begins its own list. Rebuilds keep it.

use std::io;
use std::path::Path;

use crate::files::{self, PRIVATE_FILE, write_atomically};
use crate::random::fill_random;

const FILE_NAME: &str = "starts";
const DAMAGED_NAME: &str = "starts.damaged";
const TITLE: &str = "headcount starts";
/// The maximum number of starts.
const MAX_STARTS: usize = 4_096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Start {
    number: u64,
    /// The last position at the start.
    after: u64,
}

/// The last starts of a data directory; the last one is the present one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Starts {
    earlier: Vec<Start>,
    present: Start,
}

impl Starts {
    /// Reads the list of `dir` and adds a start, with the log's `last_position`.
    ///
    /// Problems with the list are no reason to refuse a start. If it can't be written, a warning is
    /// logged, and it lacks this start. If it can't be read, it stays unchanged. If it is damaged,
    /// it is renamed to `starts.damaged`.
    ///
    /// # Errors
    /// The operating system provides no random number.
    pub fn begin(dir: &Path, last_position: u64) -> io::Result<Self> {
        let path = dir.join(FILE_NAME);
        let mut bytes = [0; 8];
        fill_random(&mut bytes)?;
        let present = Start { number: u64::from_le_bytes(bytes), after: last_position };
        let without = |error: io::Error| {
            tracing::warn!(%error, path = %path.display(), "the list of starts can't be written; cursors will expire at the next start");
        };
        let earlier = match files::read_if_there(&path) {
            Ok(None) => Vec::new(),
            Ok(Some(text)) => match parse(&text) {
                Some(starts) => starts,
                None => {
                    tracing::warn!(path = %path.display(), "the list of starts is damaged; earlier cursors have expired");
                    if let Err(error) = files::rename(&path, &dir.join(DAMAGED_NAME)) {
                        without(error);
                        return Ok(Self { earlier: Vec::new(), present });
                    }
                    Vec::new()
                }
            },
            Err(error) => {
                without(error);
                return Ok(Self { earlier: Vec::new(), present });
            }
        };
        let starts = Self { earlier: earlier[(earlier.len() + 1).saturating_sub(MAX_STARTS)..].to_vec(), present };
        write_atomically(&path, starts.encode().as_bytes(), PRIVATE_FILE).unwrap_or_else(without);
        Ok(starts)
    }

    /// Returns the starts of a log that never loses its end. They all count as one, with this
    /// number.
    pub fn one(number: u64) -> Self {
        Self { earlier: Vec::new(), present: Start { number, after: 0 } }
    }

    /// The number of the present start.
    pub fn present(&self) -> u64 {
        self.present.number
    }

    /// Whether the last position during the start with this number still means the same event. The
    /// caller checks that the log reaches it.
    pub fn has(&self, number: u64, position: u64) -> bool {
        let mut later = self.earlier.iter().chain([&self.present]).skip_while(|start| start.number != number);
        later.next().is_some() && later.next().is_none_or(|next| position <= next.after)
    }

    fn encode(&self) -> String {
        let mut text = format!("{TITLE}\n");
        for Start { number, after } in self.earlier.iter().chain([&self.present]) {
            text.push_str(&format!("{number:016x} {after}\n"));
        }
        let checksum = crc32c::crc32c(text.as_bytes());
        text.push_str(&format!("crc32c {checksum:08x}\n"));
        text
    }
}

fn parse(bytes: &[u8]) -> Option<Vec<Start>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (body, checksum) = text.strip_suffix('\n')?.rsplit_once("crc32c ")?;
    if checksum.len() != 8 || u32::from_str_radix(checksum, 16).ok()? != crc32c::crc32c(body.as_bytes()) {
        return None;
    }
    let mut lines = body.lines();
    if lines.next()? != TITLE {
        return None;
    }
    let start = |line: &str| {
        let (number, after) = line.split_once(' ')?;
        Some(Start { number: u64::from_str_radix(number, 16).ok()?, after: after.parse().ok()? })
    };
    lines.map(start).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::files::switch::{Errno, Plan, Switch};

    fn begin(dir: &Path, last_position: u64) -> Starts {
        Starts::begin(dir, last_position).unwrap()
    }

    #[test]
    fn positions_stay_valid_over_starts() {
        let dir = tempfile::tempdir().unwrap();
        let starts: Vec<Starts> = [0, 0, 7, 7, 20].map(|last| begin(dir.path(), last)).into();
        let last = starts.last().unwrap();
        for (start, until) in starts.iter().zip([0, 7, 7, 20, u64::MAX]) {
            assert!(last.has(start.present(), until), "{start:?}");
            // Positions beyond the beginning of the next start never existed.
            assert_eq!(last.has(start.present(), until.saturating_add(1)), until == u64::MAX, "{start:?}");
        }
        assert!(!last.has(last.present().wrapping_add(1), 0));
    }

    #[test]
    fn a_copy_knows_what_it_has_of_the_original_and_no_more() {
        let (dir, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        begin(dir.path(), 0);
        let copied = begin(dir.path(), 10);
        // A copy that was made when the log had 15 events.
        fs::copy(dir.path().join(FILE_NAME), copy.path().join(FILE_NAME)).unwrap();
        let later = begin(dir.path(), 20);
        let restored = begin(copy.path(), 15);
        assert!(restored.has(copied.present(), 15));
        assert!(!restored.has(copied.present(), 16));
        assert!(!restored.has(later.present(), 5));
        assert!(!begin(copy.path(), 30).has(later.present(), 25));
    }

    #[test]
    fn the_list_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let first = begin(dir.path(), 0);
        let line = |number: usize| Start { number: number as u64, after: 1 };
        let full = Starts { earlier: (1..MAX_STARTS).map(line).collect(), present: first.present };
        fs::write(dir.path().join(FILE_NAME), full.encode()).unwrap();
        let starts = begin(dir.path(), 2);
        assert_eq!(starts.earlier.len() + 1, MAX_STARTS);
        assert!(!starts.has(1, 1) && starts.has(2, 1) && starts.has(first.present(), 2));
        assert_eq!(begin(dir.path(), 2).earlier.len() + 1, MAX_STARTS);
    }

    #[test]
    fn a_damaged_list_is_kept_aside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE_NAME);
        let before = begin(dir.path(), 3);
        let sound = fs::read(&path).unwrap();
        for at in 0..sound.len() {
            let mut flipped = sound.clone();
            flipped[at] ^= 1;
            fs::write(&path, &flipped).unwrap();
            let starts = begin(dir.path(), 3);
            assert!(!starts.has(before.present(), 3), "byte {at}");
            assert_eq!(fs::read(dir.path().join(DAMAGED_NAME)).unwrap(), flipped);
            assert!(begin(dir.path(), 3).has(starts.present(), 3));
        }
        for cut in 0..sound.len() {
            assert_eq!(parse(&sound[..cut]), None, "{cut} bytes");
        }
    }

    #[test]
    fn a_failure_of_any_operation_starts_all_the_same_and_keeps_the_list_whole() {
        let mut failed = 0;
        for at in 1.. {
            let dir = tempfile::tempdir().unwrap();
            let first = begin(dir.path(), 1);
            let switch = Switch::arm(dir.path(), Plan { at, errno: Errno::Io, ..Plan::default() });
            let starts = begin(dir.path(), 2);
            let fired = !switch.failed().is_empty();
            drop(switch);
            let next = begin(dir.path(), 3);
            // Either list is whole, so this start is known or not.
            assert!(next.has(first.present(), 1), "operation {at}");
            if !fired {
                assert!(next.has(starts.present(), 3));
                break;
            }
            failed += 1;
        }
        assert!(failed >= 4, "{failed}");
    }
}
