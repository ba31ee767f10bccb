//! Replaces the fault switch in builds without it, at no cost.

use std::io;
use std::path::Path;

use super::operation::Operation;

/// The file of an operation.
#[derive(Debug, Clone)]
pub(super) struct NoOrigin;

pub(super) use NoOrigin as Origin;

impl NoOrigin {
    pub(super) fn new(_path: &Path) -> Self {
        Self
    }

    pub(super) fn run<T>(&self, _operation: Operation, call: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        call()
    }

    pub(super) fn write<T>(&self, bytes: &[u8], call: impl FnOnce(&[u8]) -> io::Result<T>) -> io::Result<T> {
        call(bytes)
    }
}

/// Calls `call`.
pub(crate) fn run_at<T>(_operation: Operation, _path: &Path, call: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    call()
}
