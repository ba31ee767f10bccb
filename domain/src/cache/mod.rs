//! The resident part of a project's records: records in tables, and the pages of long lists. It is
//! part of this crate because facts and groups read the items of pages in place. The store is only
//! known as a [`Source`](crate::records::Source).

pub mod bytes;
pub mod paged;
pub mod table;
