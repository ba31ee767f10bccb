//! Random numbers of the operating system.

use std::io;

/// Fills `bytes` by the system call, or from `/dev/urandom` where the C library does not have it.
pub(crate) fn fill_random(bytes: &mut [u8]) -> io::Result<()> {
    getrandom::fill(bytes).map_err(|error| io::Error::other(error.to_string()))
}
