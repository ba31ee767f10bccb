//! Appended entries, and the records that readers get.

/// The position of an event in the log, counted from 1. Position 0 is "before all events".
pub type Position = u64;

/// Maximum size of an append in bytes, including payload and table.
pub const MAX_BLOCK_BYTES: u64 = 64 * 1024 * 1024;

/// The events of one partition in an append.
#[derive(Clone, Copy)]
pub struct AppendEntry<'a> {
    /// The partition.
    pub partition: u16,
    /// Number of events in the payload, at least 1.
    pub count: u32,
    /// The encoded events; the log does not interpret them.
    pub payload: &'a [u8],
}

/// The events of one partition in an append, as read back.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    /// The partition.
    pub partition: u16,
    /// Position of the first event.
    pub first: Position,
    /// Number of events: they have the positions from `first` to `first + count - 1`.
    pub count: u32,
    /// The events, as appended.
    pub payload: &'a [u8],
}

// Payloads are personal data, which must not appear in logs and panics.
impl std::fmt::Debug for AppendEntry<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let AppendEntry { partition, count, payload } = self;
        write!(f, "AppendEntry(partition {partition}, {count} events, {} bytes)", payload.len())
    }
}

impl std::fmt::Debug for Record<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Record { partition, first, count, payload } = self;
        write!(f, "Record(partition {partition}, {count} events from {first}, {} bytes)", payload.len())
    }
}
