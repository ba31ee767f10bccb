//! Objects of a folder that no list names, and that are deleted.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::bucket::{Bucket, BucketError};

/// How old an object is that was found when it is deleted: a node may be about to name a younger one.
const AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// How often they are looked for.
const INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

/// See the module.
#[derive(Debug)]
pub(super) struct Unnamed {
    /// What could name them, for messages.
    by: &'static str,
    objects: BTreeSet<String>,
    looked_for: Option<Instant>,
}

impl Unnamed {
    /// Begins without any. `by` is what could name them.
    pub(super) fn new(by: &'static str) -> Self {
        Self { by, objects: BTreeSet::new(), looked_for: None }
    }

    /// Adds objects that are no longer named.
    pub(super) fn add(&mut self, objects: impl IntoIterator<Item = String>) {
        self.objects.extend(objects);
    }

    /// Forgets those that are named.
    pub(super) fn keep(&mut self, named: &BTreeSet<String>) {
        self.objects.retain(|object| !named.contains(object));
    }

    /// Forgets one that was deleted.
    pub(super) fn forget(&mut self, object: &str) {
        self.objects.remove(object);
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Looks for others, now and then. Returns all old objects of the bucket, named ones among them, and those of a later owner. What is found is not looked for again.
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

    /// Deletes them. What can't be deleted is tried again later.
    pub(super) async fn delete(&mut self, bucket: &Bucket) {
        if let Err(error) = self.delete_known(bucket).await {
            tracing::warn!(%error, "files that no {} names are not deleted yet", self.by);
        }
    }

    /// Deletes those that are known.
    ///
    /// # Errors
    /// [`BucketError`]: one can't be deleted, and others may be left.
    pub(super) async fn delete_known(&mut self, bucket: &Bucket) -> Result<(), BucketError> {
        for object in self.objects.clone() {
            bucket.delete(&object).await?;
            self.objects.remove(&object);
        }
        Ok(())
    }
}
