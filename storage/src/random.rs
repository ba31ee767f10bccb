//! Random numbers from the operating system.

use std::io;

/// Fills `bytes` by the system call; without one in the C library, from `/dev/urandom`.
pub(crate) fn fill_random(bytes: &mut [u8]) -> io::Result<()> {
    getrandom::fill(bytes).map_err(|error| io::Error::other(error.to_string()))
}
