//! Searches the bytes of files for texts.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::needles::{Needles, text};
use super::report::ErasedSearch;

/// The number of bytes searched at once.
const BUFFER_BYTES: usize = 1 << 20;

/// Searches every file below `dir`.
pub(crate) fn search_files(
    root: &Path,
    dir: &Path,
    needles: &Needles,
    found: &mut ErasedSearch,
    is_stopped: &dyn Fn() -> bool,
) -> io::Result<()> {
    let mut entries = std::fs::read_dir(dir)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        if is_stopped() {
            return Ok(());
        }
        let path = entry.path();
        let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
        if let Some(number) = needles.text_in(entry.file_name().as_encoded_bytes()) {
            found.add(format!("{name} (its name)"), text(number));
        }
        let kind = entry.file_type()?;
        if kind.is_dir() {
            search_files(root, &path, needles, found, is_stopped)?;
        } else if kind.is_file() {
            search_file(&path, &name, needles, found)?;
        }
    }
    Ok(())
}

fn search_file(path: &Path, name: &str, needles: &Needles, found: &mut ErasedSearch) -> io::Result<()> {
    found.files += 1;
    if !needles.has_texts() {
        return Ok(());
    }
    let mut file = File::open(path)?;
    // The end of a part may be the beginning of a text.
    let kept = needles.longest.saturating_sub(1);
    let mut buffer: Vec<u8> = Vec::with_capacity(BUFFER_BYTES + kept);
    let mut at = 0_u64;
    loop {
        let held = buffer.len();
        let read = (&mut file).take(BUFFER_BYTES as u64).read_to_end(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        found.bytes += read as u64;
        if let Some(number) = needles.text_in(&buffer) {
            found.add(format!("{name} (from byte {})", at.saturating_sub(held as u64)), text(number));
        }
        at += read as u64;
        buffer.drain(..buffer.len().saturating_sub(kept));
    }
}
