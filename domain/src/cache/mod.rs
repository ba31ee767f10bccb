//! What is in memory of a project's records: whole records in tables, and the pages of long lists.

pub mod paged;
pub mod table;
