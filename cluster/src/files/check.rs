//! Whether the published archive of a partition is what was written.

use std::collections::BTreeMap;
use std::time::Duration;

use headcount_common::DamagedObject;

use super::FilesError;
use super::archive::{PartitionFiles, SharedFiles};
use super::bucket::{Bucket, BucketError};
use super::pointer::ListName;

/// How long is waited for a publication before it is asked whether to stop.
const PATIENCE: Duration = Duration::from_millis(200);

/// How often the brokers are asked for what seems to be lost, and the pause between: together longer than a broker goes on that leads no longer.
const LOOKS: u32 = 5;
const PAUSE: Duration = Duration::from_secs(4);

/// The objects of an archive, each with its SHA-256.
type Objects = BTreeMap<String, String>;

impl SharedFiles {
    /// Reads what the published archive of a partition names, and returns what is not as it was written.
    pub(super) async fn check(&self, partition: u16, is_stopping: &dyn Fn() -> bool) -> Result<Vec<DamagedObject>, FilesError> {
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
        // What was published since has been written since, and what is no longer named may be gone.
        let (_, now, _) = self.published_objects(partition, is_stopping)?;
        damaged.retain(|(name, _)| now.contains_key(*name));
        let mut damaged: Vec<DamagedObject> = damaged
            .into_iter()
            .map(|(name, reason)| DamagedObject { address: bucket.address_of(name), reason: reason.to_owned() })
            .collect();
        if !self.is_named(partition, is_stopping).await? {
            let reason = "the brokers name another list of the archive than was published, or none".to_owned();
            damaged.push(DamagedObject { address: self.pointers().address_of(partition), reason });
        }
        Ok(damaged)
    }

    /// Whether the brokers name the list that this node has published. Nobody else changes that.
    async fn is_named(&self, partition: u16, is_stopping: &dyn Fn() -> bool) -> Result<bool, FilesError> {
        for look in 0..LOOKS {
            if look > 0 {
                tokio::time::sleep(PAUSE).await;
            }
            let named = self.pointers().named(partition).await?;
            // After the brokers: what is published meanwhile is seen at the next look.
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

    /// Returns what is published of a partition, as soon as nothing is being published.
    fn published_objects(
        &self,
        partition: u16,
        is_stopping: &dyn Fn() -> bool,
    ) -> Result<(Bucket, Objects, Option<ListName>), FilesError> {
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
