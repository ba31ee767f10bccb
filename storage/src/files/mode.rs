/// The mode of files that hold data: only the owner can read and write them.
pub const PRIVATE_FILE: u32 = 0o600;

/// The mode of directories: only the owner can enter them.
pub const PRIVATE_DIR: u32 = 0o700;
