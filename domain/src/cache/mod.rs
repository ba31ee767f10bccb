//! The resident part of a project's records: records in tables, and the pages of long lists. Facts and groups read the
//! items of pages in place, so this belongs to the crate; the store is only known as a
//! [`Source`](crate::records::Source).

pub mod bytes;
pub mod paged;
pub mod table;
