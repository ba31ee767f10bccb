//! The resident part of a project's records: records in tables, and the pages of long lists. Facts and groups read the items of
//! pages in place, so this is part of the crate; the store is known only as [`Source`](crate::records::Source).

pub mod paged;
pub mod table;
