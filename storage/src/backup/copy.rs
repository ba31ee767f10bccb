//! Copies contents and computes their checksum.

use std::io::{self, Read};

use sha2::{Digest, Sha256};

const BUFFER_BYTES: usize = 256 << 10;

/// Counts and hashes the bytes that are read through it.
pub(super) struct Hashed<R> {
    inner: R,
    hash: Sha256,
    /// The number of bytes so far.
    pub(super) bytes: u64,
}

impl<R: Read> Hashed<R> {
    pub(super) fn new(inner: R) -> Self {
        Self { inner, hash: Sha256::new(), bytes: 0 }
    }

    /// The SHA-256 of what was read.
    pub(super) fn sha256(self) -> String {
        hex(&self.hash.finalize())
    }
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.hash.update(&buffer[..count]);
        self.bytes += count as u64;
        Ok(count)
    }
}

/// Passes all of `contents` to `write`, in parts of bounded size.
pub(super) fn for_each_part<E>(
    mut contents: impl Read,
    read_failed: impl Fn(io::Error) -> E,
    mut write: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match contents.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => write(&buffer[..count])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(read_failed(error)),
        }
    }
}

/// The SHA-256 of these bytes.
pub(super) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a string can't fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
