//! The errors of reading recorded events.

use headcount_storage::codec::CodecError;
use headcount_storage::log::LogError;

/// Recorded events can't be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HistoryError {
    /// The log can't be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A record of the log can't be decoded although its checksum holds: another version wrote it.
    #[error("an event in the log can't be decoded: {0}")]
    Decode(#[from] CodecError),
}
