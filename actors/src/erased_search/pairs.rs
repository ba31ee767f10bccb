//! Searches the pairs of the store, and of bases.

use std::ops::ControlFlow;

use headcount_common::PARTITIONS;
use headcount_domain::{Fault, ProjectId};
use headcount_storage::keyspace::{Key, PartitionId};
use headcount_storage::store::{DiskStore, Store};

use super::needles::{Needles, text};
use super::report::ErasedSearch;
use crate::fault;

/// Searches a pair. A base has no partitions in its keys.
pub(super) fn look(needles: &Needles, place: &str, key: &[u8], value: &[u8], found: &mut ErasedSearch) {
    found.pairs += 1;
    let project = match Key::decode(key) {
        Ok(Key::Record { project, .. } | Key::Cells { project, .. }) => ProjectId(project),
        _ => return,
    };
    if needles.has_hash(project, key) || needles.has_hash(project, value) {
        found.add(place.to_owned(), "the keyed hash of a suppressed id or address".to_owned());
    }
    if let Some(number) = needles.text_in(value) {
        found.add(place.to_owned(), text(number));
    }
}

/// Searches the current pairs of sled and tables, and all pairs of all tables.
pub(crate) fn search_pairs(
    store: &DiskStore,
    needles: &Needles,
    found: &mut ErasedSearch,
    is_stopped: &dyn Fn() -> bool,
) -> Result<(), Fault> {
    let goes_on = || if is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    for partition in 0..PARTITIONS {
        let place = format!("store/ (partition {partition})");
        let mut each = |key: &[u8], value: &[u8]| {
            look(needles, &place, key, value, found);
            goes_on()
        };
        store.scan(&PartitionId(partition).0.to_be_bytes(), &mut each).map_err(fault::of_store)?;
    }
    let mut each = |file: &str, key: &[u8], value: Option<&[u8]>| {
        look(needles, &format!("store/tables/{file}"), key, value.unwrap_or_default(), found);
        goes_on()
    };
    store.unchecked_tables().visit_pairs(&mut each).map_err(|error| fault::of_store(error.into()))
}
