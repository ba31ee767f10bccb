/// A kind of operation on files that can be made to fail.
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
    /// Cuts or extends a file.
    SetLen,
    /// Allocates space.
    Allocate,
    /// Renames a file or a directory.
    Rename,
    /// Gives a file another name.
    Link,
    /// Removes a file or a directory.
    Remove,
    /// Creates a directory.
    CreateDir,
    /// Lists a directory.
    List,
    /// Calls sled, which does its own input and output.
    Sled,
}
