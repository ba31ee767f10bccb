//! Checks whether the published archive of a partition is intact.

use std::collections::BTreeMap;
use std::time::Duration;

use headcount_common::DamagedObject;

use super::archive::{PartitionFiles, SharedFiles};
use super::bucket::{Bucket, BucketError};
use super::pointer::ListName;
use super::{FilesError, Result};

/// How long to wait for a publication between two calls of `is_stopping`.
const PATIENCE: Duration = Duration::from_millis(200);

/// The attempts to find a list that seems to be lost, and the pause between them. Together they
/// last longer than a deposed leader of the brokers keeps answering.
const LOOKS: u32 = 5;
const PAUSE: Duration = Duration::from_secs(4);

/// The objects of an archive, each with its SHA-256.
type Objects = BTreeMap<String, String>;

impl SharedFiles {
    /// Reads every object of the published archive of a partition, and returns the missing and
    /// damaged ones.
    pub(super) async fn check(&self, partition: u16, is_stopping: &dyn Fn() -> bool) -> Result<Vec<DamagedObject>> {
        let (bucket, objects, _) = self.published_objects(partition, is_stopping)?;
        let mut damaged = Vec::new();
        for (name, sha256) in &objects {
            if is_stopping() {
                return Err(FilesError::Stopped);
            }
            let reason = match bucket.has_contents(name, sha256, is_stopping).await {
                Ok(true) => continue,
                Ok(false) | Err(BucketError::Damaged(_)) => "the object has other contents than were written",
                Err(BucketError::Missing(_)) => "the object is missing",
                Err(error) => return Err(error.into()),
            };
            damaged.push((name, reason));
        }
        if is_stopping() {
            return Err(FilesError::Stopped);
        }
        // Objects published since were just written, and objects no longer named may be deleted.
        let (_, now, _) = self.published_objects(partition, is_stopping)?;
        damaged.retain(|(name, _)| now.contains_key(*name));
        let mut damaged: Vec<DamagedObject> = damaged
            .into_iter()
            .map(|(name, reason)| DamagedObject { address: bucket.address_of(name), reason: reason.to_owned() })
            .collect();
        if !self.is_named(partition, is_stopping).await? {
            let reason = "the brokers name another list of the archive than was published, or none".to_owned();
            damaged.push(DamagedObject { address: self.pointers.address_of(partition), reason });
        }
        Ok(damaged)
    }

    /// Whether the brokers name the list that this node has published. Only this node changes it.
    async fn is_named(&self, partition: u16, is_stopping: &dyn Fn() -> bool) -> Result<bool> {
        for look in 0..LOOKS {
            if look > 0 {
                tokio::time::sleep(PAUSE).await;
            }
            let named = self.pointers.named(partition).await?;
            // Read after asking the brokers: the next attempt sees a publication in between.
            let (_, _, list) = self.published_objects(partition, is_stopping)?;
            if named == list {
                return Ok(true);
            }
            if is_stopping() {
                return Err(FilesError::Stopped);
            }
        }
        Ok(false)
    }

    /// Returns the published objects of a partition, after waiting for a publication in progress.
    fn published_objects(&self, partition: u16, is_stopping: &dyn Fn() -> bool) -> Result<(Bucket, Objects, Option<ListName>)> {
        let files = self.of(partition).ok_or(FilesError::NotOwner(partition))?;
        loop {
            if let Some(files) = files.try_lock_for(PATIENCE) {
                let PartitionFiles { bucket, .. } = &*files;
                return Ok((bucket.clone(), files.objects_with_hashes(), files.list().cloned()));
            }
            if is_stopping() {
                return Err(FilesError::Stopped);
            }
        }
    }
}
