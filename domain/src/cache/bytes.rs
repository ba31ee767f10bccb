//! The memory of records.

/// The memory of records, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bytes {
    /// All records.
    pub resident: usize,
    /// Records that changed and are not saved yet, so that they can't be evicted.
    pub unsaved: usize,
}

impl std::ops::AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        self.resident += other.resident;
        self.unsaved += other.unsaved;
    }
}
