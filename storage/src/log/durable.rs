//! Writes that must reach the disk, and the reaction to disk failures.

use std::io;
use std::path::Path;

use crate::files::File;

/// Ends the process after a failed write or sync of live log bytes.
///
/// After a failed fsync the kernel may have marked the dirty pages clean: a second fsync would
/// succeed without the bytes being on disk, and a read would return them from memory. A partial
/// write leaves a block, and later blocks might follow it. So the process can't continue in a known
/// state; recovery at the next start reads the real contents of the disk. It calls `abort`, not
/// `exit`, so that no destructor writes anything either.
pub(super) fn abort(doing: &'static str, path: &Path, error: &io::Error) -> ! {
    tracing::error!(path = %path.display(), %error, "the log failed to {doing}: aborting; the next start reads the state from the disk");
    std::process::abort()
}

/// Reads until `buf` is full or the file ends. Returns the number of bytes read.
pub(super) fn read_full_at(file: &File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < buf.len() {
        match file.read_at(&mut buf[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Overwrites the bytes from `from` up to `to` with zeroes.
pub(super) fn write_zeroes(file: &File, from: u64, to: u64) -> io::Result<()> {
    const CHUNK: usize = 64 * 1024;
    let zeroes = [0u8; CHUNK];
    let mut at = from;
    while at < to {
        let n = usize::try_from(to - at).map_or(CHUNK, |left| left.min(CHUNK));
        file.write_all_at(&zeroes[..n], at)?;
        at += n as u64;
    }
    Ok(())
}
