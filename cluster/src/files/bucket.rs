//! The place of files that all nodes can reach.

use std::io::{Read, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::TryStreamExt as _;
use headcount_storage::files::{self, File};
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path as ObjectPath;
use object_store::{BackoffConfig, ObjectMeta, ObjectStore, ObjectStoreExt as _, PutPayload, RetryConfig};
use sha2::{Digest as _, Sha256};

use super::http::Connector;

/// The size of the parts in which files are uploaded and downloaded.
const PART_BYTES: usize = 8 << 20;
/// How long a request is retried.
const RETRIES_LAST: Duration = Duration::from_secs(10);
const RETRIES: usize = 3;
/// The prefix of the names of files during their download.
pub(super) const FETCHED_PREFIX: &str = "fetched-";
/// The maximum size of an object that is read as a whole.
const MAX_WHOLE_BYTES: u64 = 256 << 20;

/// The reason why an object can't be read or written.
#[derive(Debug, thiserror::Error)]
pub enum BucketError {
    /// The address is not the address of a supported place.
    #[error("{address:?} is no place for files: {reason}; give s3://BUCKET/PREFIX or file:///DIRECTORY")]
    Address {
        /// The address.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The object does not exist.
    #[error("the object {0} is missing")]
    Missing(String),
    /// The contents of an object don't match its name.
    #[error("the object {0} has other contents than were written")]
    Damaged(String),
    /// The place does not answer, or refuses the request.
    #[error("files can't be reached: {0}")]
    Unavailable(String),
    /// A file on this machine can't be read or written.
    #[error("{0}")]
    Local(#[from] std::io::Error),
}

impl BucketError {
    fn of(object: &ObjectPath) -> impl FnOnce(object_store::Error) -> Self {
        let object = object.to_string();
        move |error| match error {
            object_store::Error::NotFound { .. } => Self::Missing(object),
            error => Self::Unavailable(error.to_string()),
        }
    }
}

/// A place for objects. An object never changes once it is written.
#[derive(Debug, Clone)]
pub struct Bucket {
    store: Arc<dyn ObjectStore>,
    prefix: ObjectPath,
    address: String,
    /// The folders of [`Self::below`], each with a slash at its end.
    folders: String,
}

impl Bucket {
    /// Opens the place at an address: `s3://BUCKET/PREFIX` or `file:///DIRECTORY`. For S3, the
    /// credentials, region and endpoint come from the variables of the AWS tools
    /// (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT`). The directory
    /// must exist.
    ///
    /// # Errors
    /// Returns [`BucketError::Address`].
    pub fn open(address: &str) -> Result<Self, BucketError> {
        let refused = |reason: String| BucketError::Address { address: address.to_owned(), reason };
        let (store, prefix): (Arc<dyn ObjectStore>, &str) = match address.split_once("://") {
            Some(("file", dir)) => {
                let store = LocalFileSystem::new_with_prefix(dir).map_err(|error| refused(error.to_string()))?;
                (Arc::new(store.with_fsync(true)), "")
            }
            Some(("s3", place)) => {
                let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
                let backoff = BackoffConfig { init_backoff: Duration::from_millis(100), ..BackoffConfig::default() };
                let retry = RetryConfig { backoff, max_retries: RETRIES, retry_timeout: RETRIES_LAST };
                let builder = AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retry);
                let store = builder.with_http_connector(Connector).build().map_err(|error| refused(error.to_string()))?;
                (Arc::new(store), prefix)
            }
            _ => return Err(refused("its scheme is neither s3 nor file".to_owned())),
        };
        let prefix = ObjectPath::parse(prefix.trim_end_matches('/')).map_err(|error| refused(error.to_string()))?;
        Ok(Self { store, prefix, address: address.to_owned(), folders: String::new() })
    }

    /// The address.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the part of this place below a folder.
    #[must_use]
    pub(crate) fn below(&self, folder: &str) -> Self {
        Self { prefix: self.path(folder), folders: format!("{}{folder}/", self.folders), ..self.clone() }
    }

    /// Returns the address of an object.
    pub(super) fn address_of(&self, name: &str) -> String {
        format!("{}/{}{name}", self.address.trim_end_matches('/'), self.folders)
    }

    fn path(&self, name: &str) -> ObjectPath {
        let parts = name.split('/').filter(|part| !part.is_empty());
        parts.fold(self.prefix.clone(), |path, part| path.join(part))
    }

    /// Writes an object.
    ///
    /// # Errors
    /// Returns [`BucketError::Unavailable`].
    pub(crate) async fn put(&self, name: &str, bytes: Vec<u8>) -> Result<(), BucketError> {
        let path = self.path(name);
        self.store.put(&path, PutPayload::from(bytes)).await.map(drop).map_err(BucketError::of(&path))
    }

    /// Checks that objects can be written, read and deleted here.
    ///
    /// # Errors
    /// Returns [`BucketError::Unavailable`], or [`BucketError::Missing`] if a written object can't
    /// be read.
    pub async fn try_out(&self) -> Result<(), BucketError> {
        // Other nodes may check the place at the same time.
        let name = format!("trial-{:016x}", fastrand::u64(..));
        self.put(&name, name.clone().into()).await?;
        self.get(&name).await?;
        self.delete(&name).await
    }

    /// Uploads a file as an object, in parts. The object appears when it is complete. Returns its
    /// SHA-256 in hexadecimal.
    ///
    /// # Errors
    /// Returns [`BucketError::Local`] or [`BucketError::Unavailable`].
    pub(super) async fn put_file(&self, name: &str, from: &Path) -> Result<String, BucketError> {
        self.put_reader(name, &mut std::fs::File::open(from)?).await
    }

    /// Uploads the data of a reader as an object, in parts. The object appears when it is complete.
    /// Returns its SHA-256 in hexadecimal.
    ///
    /// # Errors
    /// Returns [`BucketError::Local`] or [`BucketError::Unavailable`].
    pub(crate) async fn put_reader(&self, name: &str, from: &mut (dyn Read + Send)) -> Result<String, BucketError> {
        let path = self.path(name);
        let mut hash = Sha256::new();
        let mut part = read_part(from)?;
        hash.update(&part);
        if part.len() < PART_BYTES {
            self.store.put(&path, PutPayload::from(part)).await.map_err(BucketError::of(&path))?;
            return Ok(hex(&hash.finalize()));
        }
        let mut upload = self.store.put_multipart(&path).await.map_err(BucketError::of(&path))?;
        let sent = async {
            while !part.is_empty() {
                upload.put_part(PutPayload::from(std::mem::take(&mut part))).await.map_err(BucketError::of(&path))?;
                part = read_part(from)?;
                hash.update(&part);
            }
            upload.complete().await.map_err(BucketError::of(&path))?;
            Ok(hex(&hash.finalize()))
        };
        let sent = sent.await;
        if sent.is_err()
            && let Err(error) = upload.abort().await
        {
            tracing::debug!(object = %path, %error, "parts of an object are left in the bucket");
        }
        sent
    }

    /// Reads a whole object.
    ///
    /// # Errors
    /// Returns a [`BucketError`].
    pub(crate) async fn get(&self, name: &str) -> Result<Vec<u8>, BucketError> {
        let path = self.path(name);
        let size = self.store.head(&path).await.map_err(BucketError::of(&path))?.size;
        if size > MAX_WHOLE_BYTES {
            return Err(BucketError::Damaged(path.to_string()));
        }
        let mut bytes = Vec::new();
        while let Some(part) = self.part(&path, bytes.len() as u64, size).await? {
            bytes.extend_from_slice(&part);
        }
        Ok(bytes)
    }

    /// Downloads an object with this size and SHA-256 to a file. The file appears when it is
    /// complete.
    ///
    /// # Errors
    /// Returns a [`BucketError`].
    pub(crate) async fn get_file(&self, name: &str, bytes: u64, sha256: &str, to: &Path) -> Result<(), BucketError> {
        let path = self.path(name);
        if let Some(folder) = to.parent() {
            std::fs::create_dir_all(folder)?;
        }
        // The archive never takes a file with this name for one of its own.
        let unfinished = to.with_file_name(format!("{FETCHED_PREFIX}{:016x}", fastrand::u64(..)));
        let fetched = self.fetch(&path, (bytes, sha256), &unfinished).await;
        let fetched = fetched.and_then(|()| Ok(files::rename(&unfinished, to)?));
        if fetched.is_err() && unfinished.exists() {
            files::remove_file(&unfinished)?;
        }
        fetched
    }

    /// Reads an object, and returns whether it has this SHA-256. If `is_stopping` returns true
    /// between two parts, reading stops and the result is `false`.
    ///
    /// # Errors
    /// Returns [`BucketError::Missing`] or [`BucketError::Unavailable`].
    pub(super) async fn has_contents(
        &self,
        name: &str,
        sha256: &str,
        is_stopping: &dyn Fn() -> bool,
    ) -> Result<bool, BucketError> {
        let path = self.path(name);
        let size = self.store.head(&path).await.map_err(BucketError::of(&path))?.size;
        let (mut hash, mut done) = (Sha256::new(), 0);
        while let Some(part) = self.part(&path, done, size).await? {
            if is_stopping() {
                return Ok(false);
            }
            hash.update(&part);
            done += part.len() as u64;
        }
        Ok(hex(&hash.finalize()) == sha256)
    }

    async fn fetch(&self, path: &ObjectPath, (bytes, sha256): (u64, &str), to: &Path) -> Result<(), BucketError> {
        let mut file = File::create(to)?;
        let (mut hash, mut done) = (Sha256::new(), 0);
        while let Some(part) = self.part(path, done, bytes).await? {
            hash.update(&part);
            file.write_all(&part)?;
            done += part.len() as u64;
        }
        file.sync_all()?;
        let is_whole = done == bytes && hex(&hash.finalize()) == sha256;
        if is_whole { Ok(()) } else { Err(BucketError::Damaged(path.to_string())) }
    }

    /// Reads the part of an object of `size` bytes that begins at `from`; `None` at the end.
    async fn part(&self, path: &ObjectPath, from: u64, size: u64) -> Result<Option<bytes::Bytes>, BucketError> {
        if from >= size {
            return Ok(None);
        }
        let until = size.min(from + PART_BYTES as u64);
        let part = self.store.get_range(path, from..until).await.map_err(BucketError::of(path))?;
        if part.is_empty() { Err(BucketError::Damaged(path.to_string())) } else { Ok(Some(part)) }
    }

    /// Deletes an object, if it exists.
    ///
    /// # Errors
    /// Returns [`BucketError::Unavailable`].
    pub(crate) async fn delete(&self, name: &str) -> Result<(), BucketError> {
        let path = self.path(name);
        match self.store.delete(&path).await {
            Err(object_store::Error::NotFound { .. }) | Ok(()) => Ok(()),
            Err(error) => Err(BucketError::of(&path)(error)),
        }
    }

    /// Returns the names of all objects that are older than `age` by two clocks: this machine's
    /// clock and the clock of the place, which dates the newest object. By a single clock that is
    /// ahead, objects would be deleted just before a list names them.
    ///
    /// # Errors
    /// Returns [`BucketError::Unavailable`].
    pub(crate) async fn older_than(&self, age: Duration) -> Result<Vec<String>, BucketError> {
        let objects = self.list().await?;
        let written = |object: &ObjectMeta| SystemTime::from(object.last_modified);
        let Some(newest) = objects.iter().map(written).max() else { return Ok(Vec::new()) };
        let now = SystemTime::now().min(newest);
        let is_old = |object: &&ObjectMeta| now.duration_since(written(object)).is_ok_and(|since| since > age);
        Ok(objects.iter().filter(is_old).filter_map(|object| self.name_of(object)).collect())
    }

    /// Returns the names of all objects.
    ///
    /// # Errors
    /// Returns [`BucketError::Unavailable`].
    pub(crate) async fn all(&self) -> Result<Vec<String>, BucketError> {
        Ok(self.list().await?.iter().filter_map(|object| self.name_of(object)).collect())
    }

    async fn list(&self) -> Result<Vec<ObjectMeta>, BucketError> {
        self.store.list(Some(&self.prefix)).try_collect().await.map_err(BucketError::of(&self.prefix))
    }

    fn name_of(&self, object: &ObjectMeta) -> Option<String> {
        let parts = object.location.prefix_match(&self.prefix)?;
        Some(parts.map(|part| part.as_ref().to_owned()).collect::<Vec<_>>().join("/"))
    }
}

/// Reads the next part of a file; empty at its end.
fn read_part(from: &mut (dyn Read + Send)) -> std::io::Result<Vec<u8>> {
    let mut part = Vec::new();
    from.take(PART_BYTES as u64).read_to_end(&mut part)?;
    Ok(part)
}

/// Returns the SHA-256 of bytes, in hexadecimal.
pub(crate) fn sha256_of(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(digest: &[u8]) -> String {
    use std::fmt::Write as _;
    digest.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[tokio::test]
    async fn objects_are_old_by_both_clocks() {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        let dir = tempfile::tempdir().unwrap();
        let bucket = Bucket::open(&format!("file://{}", dir.path().display())).unwrap();
        let older = async || bucket.older_than(DAY).await.unwrap().into_iter().collect::<BTreeSet<_>>();
        let write = |name: &str, at: SystemTime| {
            let file = std::fs::File::create(dir.path().join(name)).unwrap();
            file.set_modified(at).unwrap();
        };
        assert!(older().await.is_empty());
        // This machine's clock is two days ahead, or the newest files are two days old.
        let written = SystemTime::now() - 2 * DAY;
        write("about-to-be-named", written);
        write("named", written + DAY / 2);
        assert!(older().await.is_empty());
        write("new", written + 3 * DAY / 2);
        assert_eq!(older().await, BTreeSet::from(["about-to-be-named".to_owned()]));
        // The clock of the place is ahead.
        write("ahead", written + 40 * DAY);
        assert_eq!(older().await, BTreeSet::from(["about-to-be-named", "named"].map(str::to_owned)));
    }
}
