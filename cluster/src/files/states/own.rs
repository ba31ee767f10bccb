//! The published state of a partition that this node owns.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use crate::files::Result;
use headcount_actors::SavedState;
use headcount_domain::Position;
use headcount_storage::TableFile;
use tokio::time::timeout;

use super::StateTiming;
use super::list::{StateFile, StateList, StateObject};
use crate::files::bucket::{Bucket, sha256_of};
use crate::files::pointer::{ListName, OwnPointer, Pointers};
use crate::files::unnamed::Unnamed;
use crate::log::{Link, sequence_of};

/// How long a takeover waits for a list. Without the list, it replays more events.
const READ_WITHIN: Duration = Duration::from_secs(2);

/// The two kinds of files. Each kind has its own numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Table,
    ExternalIds,
}

/// The published state of a partition that this node owns.
#[derive(Debug)]
pub(super) struct OwnState {
    pub(super) bucket: Bucket,
    pointer: OwnPointer,
    published: Option<StateList>,
    /// When a state was last published, or when the node took the partition over.
    published_at: Instant,
    /// The objects written since the node took the partition over, by the number of their file.
    written: HashMap<(Kind, u64), StateObject>,
    /// Objects that the published list no longer names.
    unnamed: Unnamed,
    /// How often the state was withdrawn. A state saved before a withdrawal is never published
    /// after it.
    pub(super) withdrawals: u64,
}

impl OwnState {
    /// Reads the published state. A state that can't be read counts as none.
    pub(super) async fn open(bucket: Bucket, pointer: OwnPointer) -> Self {
        let published = match &pointer.value.list {
            None => None,
            Some(ListName { name, sha256 }) => match timeout(READ_WITHIN, bucket.get(name)).await {
                Ok(Ok(bytes)) => StateList::decode(&bytes, sha256).map_err(|error| error.to_string()),
                Ok(Err(error)) => Err(error.to_string()),
                Err(elapsed) => Err(elapsed.to_string()),
            }
            .inspect_err(|error| tracing::warn!(name, %error, "a published state can't be read; what it reflects is replayed"))
            .ok(),
        };
        let (written, unnamed) = (HashMap::new(), Unnamed::new("state"));
        Self { bucket, pointer, published, published_at: Instant::now(), written, unnamed, withdrawals: 0 }
    }

    pub(super) fn published(&self) -> Option<&StateList> {
        self.published.as_ref()
    }

    /// The position that the published state reflects; 0 if there is none.
    pub(super) fn position(&self) -> Position {
        self.published.as_ref().map_or(0, |list| list.position)
    }

    pub(super) fn is_due(&self, saved: Position, timing: &StateTiming) -> bool {
        let messages = sequence_of(saved).saturating_sub(sequence_of(self.position()));
        let since = self.published_at.elapsed();
        messages > 0 && (since >= timing.most || since >= timing.least && messages >= timing.messages)
    }

    pub(super) fn put_off(&mut self) {
        self.published_at = Instant::now();
    }

    pub(super) async fn publish(&mut self, pointers: &Pointers, partition: u16, saved: &SavedState, version: &str) -> Result<()> {
        // Set after a failure, too, so that the next attempt comes later.
        self.published_at = Instant::now();
        if saved.position <= self.position() && self.published.as_ref().is_some_and(|list| list.state_version == version) {
            return Ok(());
        }
        let tables = self.write_files(Kind::Table, &saved.tables).await?;
        let external_ids = self.write_files(Kind::ExternalIds, &saved.external_ids).await?;
        let name = self.new_name();
        self.bucket.put(&name, saved.small.clone()).await?;
        let small = StateObject { name, bytes: saved.small.len() as u64, sha256: sha256_of(&saved.small) };
        let list = StateList::new(
            (version.to_owned(), saved.letters),
            (saved.position, saved.mark.map(Link::from)),
            small,
            (tables, external_ids),
        );
        let bytes = list.encode()?;
        let named = ListName { sha256: sha256_of(&bytes), name: format!("{}.json", self.new_name()) };
        self.bucket.put(&named.name, bytes).await?;
        self.point_to(pointers, partition, Some((named, list))).await?;
        self.delete_unnamed().await;
        Ok(())
    }

    pub(super) async fn withdraw(&mut self, pointers: &Pointers, partition: u16) -> Result<()> {
        self.withdrawals += 1;
        // Written even if the pointer names no list, which proves that this node is still the
        // owner.
        self.point_to(pointers, partition, None).await?;
        self.written.clear();
        // Includes objects of unknown lists, but none that a later owner may have written since.
        let last = format!("{:020}.", self.pointer.epoch);
        self.unnamed.add(self.bucket.all().await?.into_iter().filter(|object| *object < last));
        Ok(self.unnamed.delete_known(&self.bucket).await?)
    }

    /// Points to another list, or to none. Objects that only the former list names are deleted
    /// later.
    async fn point_to(&mut self, pointers: &Pointers, partition: u16, new: Option<(ListName, StateList)>) -> Result<()> {
        let (name, list) = new.unzip();
        let former = self.pointer.value.list.clone();
        pointers.publish(partition, &mut self.pointer, name).await?;
        let before = std::mem::replace(&mut self.published, list);
        self.unnamed.add(former.map(|list| list.name));
        self.unnamed.add(before.iter().flat_map(StateList::objects).map(str::to_owned));
        let named = named(self.published.as_ref(), &self.pointer);
        self.unnamed.keep(&named);
        self.written.retain(|_, object| named.contains(&object.name));
        Ok(())
    }

    fn new_name(&self) -> String {
        // The name contains the epoch, so that no owner deletes an object of another.
        format!("{:020}-{:016x}", self.pointer.epoch, fastrand::u64(..))
    }

    /// Uploads the files that the bucket lacks.
    async fn write_files(&mut self, kind: Kind, files: &[TableFile]) -> Result<Vec<StateFile>> {
        let mut written = Vec::with_capacity(files.len());
        for file in files {
            let object = match self.written.get(&(kind, file.id())) {
                Some(object) => object.clone(),
                None => {
                    let name = self.new_name();
                    let sha256 = self.bucket.put_reader(&name, &mut file.reader()).await?;
                    let object = StateObject { name, bytes: file.bytes(), sha256 };
                    self.written.insert((kind, file.id()), object.clone());
                    object
                }
            };
            written.push(StateFile { id: file.id(), object });
        }
        Ok(written)
    }

    /// Deletes objects that the published list does not name. Failures are retried later.
    async fn delete_unnamed(&mut self) {
        let old = self.unnamed.look(&self.bucket).await;
        // Spares the objects of a later owner: this machine may have been suspended for days.
        let later = format!("{:020}.", self.pointer.epoch);
        self.unnamed.add(old.into_iter().filter(|object| *object < later));
        self.unnamed.keep(&named(self.published.as_ref(), &self.pointer));
        self.unnamed.delete(&self.bucket).await;
    }
}

/// The named objects, including the list itself.
fn named(published: Option<&StateList>, pointer: &OwnPointer) -> BTreeSet<String> {
    let list = pointer.value.list.iter().map(|list| list.name.clone());
    published.into_iter().flat_map(StateList::objects).map(str::to_owned).chain(list).collect()
}
