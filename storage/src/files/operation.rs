/// A kind of file operation, which the fault switch can make fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Opens or creates a file.
    Open,
    /// Reads bytes or the length.
    Read,
    /// Writes bytes.
    Write,
    /// Makes a file or a directory durable.
    Sync,
    /// Truncates or extends a file.
    SetLen,
    /// Allocates space.
    Allocate,
    /// Renames a file or a directory.
    Rename,
    /// Creates a hard link.
    Link,
    /// Removes a file or a directory.
    Remove,
    /// Creates a directory.
    CreateDir,
    /// Lists a directory.
    List,
    /// Calls sled, which does its own I/O.
    Sled,
}
