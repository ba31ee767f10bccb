//! Objects of a folder that no list names. They are deleted.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::bucket::{Bucket, BucketError};

/// The minimum age of a found object before it is deleted: a node may be about to name a younger
/// one.
const AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// The time between two searches for unnamed objects.
const INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

/// Objects of a folder that no list names.
#[derive(Debug)]
pub(super) struct Unnamed {
    /// The kind of list that could name the objects, for messages.
    by: &'static str,
    objects: BTreeSet<String>,
    looked_for: Option<Instant>,
}

impl Unnamed {
    /// Begins without objects. `by` is the kind of list that could name them.
    pub(super) fn new(by: &'static str) -> Self {
        Self { by, objects: BTreeSet::new(), looked_for: None }
    }

    /// Adds objects that are no longer named.
    pub(super) fn add(&mut self, objects: impl IntoIterator<Item = String>) {
        self.objects.extend(objects);
    }

    /// Drops the objects that are named.
    pub(super) fn keep(&mut self, named: &BTreeSet<String>) {
        self.objects.retain(|object| !named.contains(object));
    }

    /// Drops an object that was deleted.
    pub(super) fn forget(&mut self, object: &str) {
        self.objects.remove(object);
    }

    /// Whether there are no unnamed objects.
    pub(super) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Returns all old objects of the bucket, including named ones and those of a later owner.
    /// Returns none within the interval after the last search.
    pub(super) async fn look(&mut self, bucket: &Bucket) -> Vec<String> {
        if self.looked_for.is_some_and(|at| at.elapsed() < INTERVAL) {
            return Vec::new();
        }
        self.looked_for = Some(Instant::now());
        bucket.older_than(AGE).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "files that no {} names could not be looked for", self.by);
            Vec::new()
        })
    }

    /// Deletes the objects. Failures are retried later.
    pub(super) async fn delete(&mut self, bucket: &Bucket) {
        if let Err(error) = self.delete_known(bucket).await {
            tracing::warn!(%error, "files that no {} names are not deleted yet", self.by);
        }
    }

    /// Deletes the known objects.
    ///
    /// # Errors
    /// Returns a [`BucketError`]. The object that failed and others may be left.
    pub(super) async fn delete_known(&mut self, bucket: &Bucket) -> Result<(), BucketError> {
        for object in self.objects.clone() {
            bucket.delete(&object).await?;
            self.objects.remove(&object);
        }
        Ok(())
    }
}
