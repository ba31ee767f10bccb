//! The published archives of the partitions that a node owns.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use headcount_archive::{ArchiveError, CATALOG_NAME, Catalog, Damage, FileSource, ListedFile, MANIFEST_NAME};
use headcount_common::{DamagedObject, SharedArchive, SharedArchiveError};
use headcount_domain::{Position, ProjectId};
use headcount_storage::files::{self, PRIVATE_FILE, write_atomically};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::bucket::{Bucket, BucketError, sha256_of};
use super::list::{ArchiveList, ProjectList, folder_of, list_object, object_of};
use super::pointer::{ListName, OwnPointer, Pointers};
use super::states::SharedStates;
use super::sync::{dir_of, fetch_lists, remove_all};
use super::unnamed::Unnamed;
use super::{FilesError, Result};
use crate::connection::Connection;
use crate::levels::Levels;
use crate::log::LogReader;
use crate::record::ClusterRecord;

/// The place of files counts as reachable if a list can be read within this time.
const READABLE_WITHIN: Duration = Duration::from_secs(2);
/// The name of the pointers to archives.
const KIND: &str = "archive";
/// The file with the list of an archive, in the archive's directory.
const LIST_NAME: &str = "published.json";

/// The published archives of the partitions of one node.
#[derive(Debug)]
pub struct SharedFiles {
    runtime: Handle,
    connection: Connection,
    bucket: Bucket,
    pub(super) pointers: Pointers,
    /// The published saved states of the partitions.
    pub(crate) states: SharedStates,
    /// How long the log keeps events after they are in the bucket.
    log_kept: Duration,
    /// The archives by partition. Each is locked during its publication.
    partitions: Mutex<HashMap<u16, Arc<Mutex<PartitionFiles>>>>,
}

/// The state of the archive of one partition.
#[derive(Debug)]
pub(super) struct PartitionFiles {
    pub(super) bucket: Bucket,
    pointer: OwnPointer,
    published: Published,
    /// Objects that the published list no longer names.
    unnamed: Unnamed,
    /// Positions up to which the log may be trimmed, each with the earliest time.
    sealed: Vec<(Instant, Position)>,
    log: Option<LogReader>,
}

/// The published list, with the lists that it names.
#[derive(Debug, Default)]
struct Published {
    catalog: String,
    logged_after: Position,
    sealed_until: Position,
    projects: BTreeMap<ProjectId, ProjectList>,
}

impl SharedFiles {
    /// Keeps archives in a bucket, which must be the bucket of the cluster if it already has one.
    ///
    /// # Errors
    /// Returns [`FilesError::Elsewhere`] or [`FilesError::Brokers`].
    pub async fn open(connection: &Connection, record: &ClusterRecord, bucket: &Bucket, log_kept: Duration) -> Result<Self> {
        let pointers = Pointers::open(connection, KIND).await?;
        let theirs = pointers.agree(bucket.address()).await?;
        if theirs != bucket.address() {
            return Err(FilesError::Elsewhere { own: bucket.address().to_owned(), theirs });
        }
        Self::open_at(connection, record, bucket, (pointers, log_kept)).await
    }

    /// Keeps the archives of a new cluster in a bucket, even if an earlier attempt chose another
    /// one.
    pub(crate) async fn open_new(connection: &Connection, record: &ClusterRecord, bucket: &Bucket) -> Result<Self> {
        let pointers = Pointers::open(connection, KIND).await?;
        pointers.move_to(bucket.address()).await?;
        Self::open_at(connection, record, bucket, (pointers, Duration::ZERO)).await
    }

    async fn open_at(
        connection: &Connection,
        record: &ClusterRecord,
        bucket: &Bucket,
        (pointers, log_kept): (Pointers, Duration),
    ) -> Result<Self> {
        let bucket = bucket.below(&record.incarnation.to_string());
        let states = SharedStates::open(connection, &bucket).await?;
        let (runtime, connection) = (Handle::current(), connection.clone());
        Ok(Self { runtime, connection, bucket, pointers, states, log_kept, partitions: Mutex::default() })
    }

    /// Returns the place where the nodes of a cluster keep files, if there is one.
    ///
    /// # Errors
    /// Returns [`FilesError::Brokers`].
    pub async fn place(connection: &Connection) -> Result<Option<String>> {
        Pointers::open(connection, KIND).await?.place().await
    }

    /// Takes over the archive of a partition for the owner of `epoch`, and makes the directory
    /// `root` list the published archive. From now on, no other node can publish it, and the log
    /// keeps all events that are not published.
    ///
    /// # Errors
    /// Returns a [`FilesError`].
    pub async fn take_over(&self, partition: u16, epoch: u64, root: &Path) -> Result<()> {
        let pointer = self.pointers.take_over(partition, epoch).await?;
        let bucket = self.bucket.below(&format!("{partition:02}"));
        let published = match &pointer.value.list {
            Some(ListName { name, sha256 }) => {
                let list = read_list(&bucket, name, sha256, root).await?;
                let catalog = list.catalog()?;
                let projects = fetch_lists(&bucket, &list, root).await?;
                keep_list(root, &list.encode()?)?;
                let (logged_after, sealed_until) = (catalog.logged_after(), catalog.sealed_until());
                Published { catalog: list.catalog, logged_after, sealed_until, projects }
            }
            None => {
                remove_all(root)?;
                Published::default()
            }
        };
        self.insert(partition, (bucket, pointer, published));
        Ok(())
    }

    /// Like [`Self::take_over`], for an owner that publishes the whole archive again.
    pub(crate) async fn replace(&self, partition: u16, epoch: u64) -> Result<()> {
        let pointer = self.pointers.take_over(partition, epoch).await?;
        self.insert(partition, (self.bucket.below(&format!("{partition:02}")), pointer, Published::default()));
        Ok(())
    }

    fn insert(&self, partition: u16, (bucket, pointer, published): (Bucket, OwnPointer, Published)) {
        let files = PartitionFiles { bucket, pointer, published, unnamed: Unnamed::new("list"), sealed: Vec::new(), log: None };
        self.partitions.lock().insert(partition, Arc::new(Mutex::new(files)));
    }

    /// Lets published events be removed from the log that `reader` reads. This node now writes that
    /// log.
    pub(crate) fn adopt(&self, partition: u16, reader: LogReader) {
        if let Some(files) = self.of(partition) {
            files.lock().log = Some(reader);
        }
    }

    /// The position up to which events of an owned partition are sealed.
    pub(crate) fn sealed_until(&self, partition: u16) -> Position {
        self.of(partition).map_or(0, |files| files.lock().published.sealed_until)
    }

    /// Stops publishing the archive of a partition.
    pub(crate) fn release(&self, partition: u16) {
        self.states.release(partition);
        self.partitions.lock().remove(&partition);
    }

    /// Whether the lists of a partition's archive can be read now, so that another node could take
    /// it over.
    pub(crate) async fn is_readable(&self, partition: u16) -> bool {
        let Some(files) = self.of(partition) else { return false };
        // A publication in progress holds the lock. Don't wait for it.
        let Some((bucket, list)) = files.try_lock().map(|files| (files.bucket.clone(), files.pointer.value.list.clone())) else {
            return false;
        };
        match list {
            Some(list) => timeout(READABLE_WITHIN, bucket.get(&list.name)).await.is_ok_and(|read| read.is_ok()),
            None => true,
        }
    }

    pub(super) fn of(&self, partition: u16) -> Option<Arc<Mutex<PartitionFiles>>> {
        self.partitions.lock().get(&partition).cloned()
    }
}

/// Reads the list of an archive, if possible from its directory: a node can then take the partition
/// over while the bucket is unreachable.
async fn read_list(bucket: &Bucket, name: &str, sha256: &str, root: &Path) -> Result<ArchiveList> {
    let kept = files::read_if_there(&root.join(LIST_NAME)).map_err(BucketError::from)?;
    let bytes = match kept.filter(|bytes| sha256_of(bytes) == sha256) {
        Some(bytes) => bytes,
        None => bucket.get(name).await?,
    };
    Ok(ArchiveList::decode(&bytes, sha256)?)
}

/// Writes the bytes of a list to the directory of its archive.
fn keep_list(root: &Path, bytes: &[u8]) -> Result<()> {
    Ok(write_atomically(&root.join(LIST_NAME), bytes, PRIVATE_FILE).map_err(BucketError::from)?)
}

impl SharedArchive for SharedFiles {
    fn may_have_bases(&self) -> bool {
        // A node of an earlier program version could not begin with a base of a later fold version,
        // and the events before the base would be gone.
        self.connection.written().fold == Levels::own().fold
    }

    fn publish(&self, partition: u16, root: &Path, is_stopping: &dyn Fn() -> bool) -> Result<(), SharedArchiveError> {
        let files = self.of(partition).ok_or(SharedArchiveError::NotOwner(partition))?;
        let mut files = files.lock();
        self.runtime.block_on(files.publish(&self.pointers, partition, root, is_stopping))?;
        Ok(self.runtime.block_on(files.delete_unnamed(&self.pointers, partition))?)
    }

    fn trim(&self, partitions: Range<u16>, until: Position) -> Result<bool, SharedArchiveError> {
        for partition in partitions {
            let files = self.of(partition).ok_or(SharedArchiveError::NotOwner(partition))?;
            let mut files = files.lock();
            self.runtime.block_on(files.trim(until, self.log_kept))?;
        }
        Ok(false)
    }

    fn remove(&self, partition: u16, project: ProjectId) -> Result<(), SharedArchiveError> {
        let files = self.of(partition).ok_or(SharedArchiveError::NotOwner(partition))?;
        let files = files.lock();
        Ok(self.runtime.block_on(files.remove(project))?)
    }

    fn keep_listed(&self, partition: u16, project: ProjectId) -> Result<(), SharedArchiveError> {
        let files = self.of(partition).ok_or(SharedArchiveError::NotOwner(partition))?;
        let mut files = files.lock();
        Ok(self.runtime.block_on(files.keep_listed(&self.pointers, partition, project))?)
    }

    fn needs_room(&self, partition: u16) -> bool {
        let log = self.of(partition).and_then(|files| files.lock().log.clone());
        // If the brokers don't answer, assume that they have room.
        log.is_some_and(|log| self.runtime.block_on(log.is_half_full()).unwrap_or(false))
    }

    fn withdraw_state(&self, partition: u16) -> Result<(), SharedArchiveError> {
        self.runtime.block_on(self.states.withdraw(partition))?;
        Ok(())
    }

    fn damaged_objects(&self, partition: u16, is_stopping: &dyn Fn() -> bool) -> Result<Vec<DamagedObject>, SharedArchiveError> {
        Ok(self.runtime.block_on(self.check(partition, is_stopping))?)
    }

    fn published_files(&self, partition: u16, project: ProjectId) -> Vec<ListedFile> {
        let Some(files) = self.of(partition) else { return Vec::new() };
        let files = files.lock();
        files.published.projects.get(&project).map(|list| list.files.clone()).unwrap_or_default()
    }

    fn source(&self, partition: u16) -> Option<Arc<dyn FileSource>> {
        let bucket = self.bucket.below(&format!("{partition:02}"));
        Some(Arc::new(BucketFiles { runtime: self.runtime.clone(), bucket }))
    }
}

impl PartitionFiles {
    /// The published list.
    pub(super) fn list(&self) -> Option<&ListName> {
        self.pointer.value.list.as_ref()
    }

    /// All published objects, each with its SHA-256.
    pub(super) fn objects_with_hashes(&self) -> BTreeMap<String, String> {
        let lists = self.list().map(|list| (list.name.clone(), list.sha256.clone()));
        let of_projects = self.published.projects.iter().flat_map(|(project, list)| list.objects_with_hashes(*project));
        of_projects.chain(lists).collect()
    }

    async fn publish(&mut self, pointers: &Pointers, partition: u16, root: &Path, is_stopping: &dyn Fn() -> bool) -> Result<()> {
        let catalog_text = files::read_if_there(&root.join(CATALOG_NAME)).map_err(BucketError::from)?.unwrap_or_default();
        if catalog_text.is_empty() {
            return Ok(());
        }
        let catalog = Catalog::from_bytes(&catalog_text)?;
        let catalog_text = String::from_utf8_lossy(&catalog_text).into_owned();
        let mut projects = BTreeMap::new();
        for (project, _) in catalog.projects() {
            if is_stopping() {
                return Err(FilesError::Stopped);
            }
            projects.insert(project, self.upload(root, project, is_stopping).await?);
        }
        if self.published.projects == projects && self.published.catalog == catalog_text {
            return Ok(());
        }
        let names = projects.iter().map(|(project, list)| (*project, list.sha256.clone())).collect();
        let list = ArchiveList::new(catalog_text, &names);
        let bytes = list.encode()?;
        keep_list(root, &bytes)?;
        let sha256 = sha256_of(&bytes);
        let name = format!("lists/{:020}-{sha256}.json", self.pointer.epoch);
        self.bucket.put(&name, bytes).await?;
        let former = self.pointer.value.list.clone().map(|list| list.name);
        pointers.publish(partition, &mut self.pointer, Some(ListName { name, sha256 })).await?;
        let (logged_after, sealed_until) = (catalog.logged_after(), catalog.sealed_until());
        let published = Published { catalog: list.catalog, logged_after, sealed_until, projects };
        let before = std::mem::replace(&mut self.published, published);
        self.unnamed.add(before.objects().chain(former));
        self.unnamed.keep(&named(&self.published, &self.pointer));
        Ok(())
    }

    /// Uploads the files of a project that the bucket lacks, and then the list of the files.
    async fn upload(&self, root: &Path, project: ProjectId, is_stopping: &dyn Fn() -> bool) -> Result<ProjectList> {
        let dir = dir_of(root, project);
        let bytes = files::read(&dir.join(MANIFEST_NAME)).map_err(BucketError::from)?;
        let list = ProjectList::of(&bytes, project)?;
        let published = self.published.projects.get(&project);
        if published == Some(&list) {
            return Ok(list);
        }
        for file in list.files.iter().filter(|file| published.is_none_or(|published| !published.files.contains(file))) {
            if is_stopping() {
                return Err(FilesError::Stopped);
            }
            let (object, path) = (object_of(project, file), dir.join(&file.name));
            if self.bucket.put_file(&object, &path).await? != file.sha256 {
                // No list names the file yet. The log keeps its events until one does.
                self.bucket.delete(&object).await?;
                let damaged = ArchiveError::Damaged { file: file.name.clone(), reason: Damage::Hash };
                return Err(damaged.into());
            }
        }
        self.bucket.put(&list_object(project, &list.sha256), bytes).await?;
        Ok(list)
    }

    /// Deletes objects that the published list does not name. Failures are retried later.
    async fn delete_unnamed(&mut self, pointers: &Pointers, partition: u16) -> Result<()> {
        let old = self.unnamed.look(&self.bucket).await;
        if old.is_empty() && self.unnamed.is_empty() {
            return Ok(());
        }
        // This machine may have been suspended for days. If it still has the pointer, no other
        // owner has written any of these objects for a later list.
        let list = self.pointer.value.list.clone();
        pointers.publish(partition, &mut self.pointer, list).await?;
        self.unnamed.add(old);
        self.unnamed.keep(&named(&self.published, &self.pointer));
        self.unnamed.delete(&self.bucket).await;
        Ok(())
    }

    /// Deletes all objects of a project. The published list must not name the project.
    async fn remove(&self, project: ProjectId) -> Result<()> {
        if self.published.projects.contains_key(&project) {
            return Err(FilesError::StillListed(project));
        }
        let folder = self.bucket.below(&folder_of(project));
        for object in folder.all().await? {
            folder.delete(&object).await?;
        }
        Ok(())
    }

    /// Deletes all objects of a project that the published list does not name.
    async fn keep_listed(&mut self, pointers: &Pointers, partition: u16, project: ProjectId) -> Result<()> {
        // Needed without a list, too: a former owner may have uploaded files for a list that it
        // never published.
        let list = self.pointer.value.list.clone();
        let folder = folder_of(project);
        let below = self.bucket.below(&folder);
        let there = below.all().await?;
        // If this owner still has the pointer, no other owner has written any of these objects for
        // a later list.
        pointers.publish(partition, &mut self.pointer, list).await?;
        let listed = self.published.projects.get(&project);
        let named: BTreeSet<String> = listed.into_iter().flat_map(|list| list.objects(project)).collect();
        for object in there {
            let name = format!("{folder}/{object}");
            if !named.contains(&name) {
                below.delete(&object).await?;
                self.unnamed.forget(&name);
            }
        }
        Ok(())
    }

    /// Removes events from the log once they have been published for `kept`.
    async fn trim(&mut self, until: Position, kept: Duration) -> Result<()> {
        let (until, now) = (until.min(self.published.logged_after), Instant::now());
        if self.sealed.last().is_none_or(|(_, last)| *last < until) {
            self.sealed.push((now + kept, until));
        }
        let Some(log) = &self.log else { return Ok(()) };
        let is_full = log.is_half_full().await.map_err(FilesError::brokers)?;
        let is_due = |(at, _): &&(Instant, Position)| is_full || *at <= now;
        let Some(until) = self.sealed.iter().take_while(is_due).last().map(|(_, until)| *until) else { return Ok(()) };
        log.remove_before(until).await.map_err(FilesError::brokers)?;
        self.sealed.retain(|(_, sealed)| *sealed > until);
        Ok(())
    }
}

/// The named objects, including the list itself.
fn named(published: &Published, pointer: &OwnPointer) -> BTreeSet<String> {
    published.objects().chain(pointer.value.list.clone().map(|list| list.name)).collect()
}

impl Published {
    /// The objects that the list names.
    fn objects(&self) -> impl Iterator<Item = String> {
        self.projects.iter().flat_map(|(project, list)| list.objects(*project))
    }
}

/// The files of one partition's archive.
#[derive(Debug)]
struct BucketFiles {
    runtime: Handle,
    bucket: Bucket,
}

impl FileSource for BucketFiles {
    fn fetch(&self, project: ProjectId, file: &ListedFile, to: &Path) -> io::Result<()> {
        let fetched = self.runtime.block_on(self.bucket.get_file(&object_of(project, file), file.bytes, &file.sha256, to));
        fetched.map_err(|error| match error {
            BucketError::Missing(_) => io::Error::new(io::ErrorKind::NotFound, error),
            BucketError::Damaged(_) => io::Error::new(io::ErrorKind::InvalidData, error),
            BucketError::Local(error) => error,
            error @ (BucketError::Unavailable(_) | BucketError::Address { .. }) => io::Error::other(error),
        })
    }
}
