//! Moving an installation into a cluster that is being made.
//!
//! First everything is read once, so that what can't be read, or does not fit, is known before anything is made. Then the control data are appended to the control log, and the events to
//! the streams of their partitions, in an epoch of this attempt. What an earlier attempt has recorded is read again, with its chain, and compared: the next message follows it. Documents come after the events: how far webhooks have come is said by
//! the positions that these have got.
//!
//! Projects that have lost events by their retention have the files of an archive instead, which are published as those of a node (`files`). The stream of their partition begins behind the positions of these.

mod documents;
mod error;
mod gather;
mod streams;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use headcount_actors::{LeftBehind, MovingSource};
use headcount_common::{ControlError, ControlLog as _, PARTITIONS, SharedArchive as _};
use serde::Serialize;
use tokio::runtime::Handle;

use crate::connection::Connection;
use crate::control::ControlStream;
use crate::files::{Bucket, FilesError, SharedFiles};
use crate::log::{last_of, sequence_of};
use crate::record::ClusterRecord;
pub use error::MoveError;
use gather::{Sizes, gather};
use streams::Streams;

/// The share of a stream that may be taken by what moves in: one in this many bytes.
const SHARE: u64 = 2;

/// What moved in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Moved {
    /// Organizations.
    pub organizations: usize,
    /// Projects.
    pub projects: usize,
    /// Events, duplicates among them, and floors.
    pub events: u64,
    /// Bytes that they take on each broker.
    pub bytes: u64,
    /// Projects that have lost events, of which the files of the archive moved.
    pub projects_with_files: usize,
    /// Of the events, those that an earlier attempt had recorded.
    pub recorded_before: u64,
    /// Company profiles, privacy requests and webhooks.
    pub documents: usize,
    /// What stayed behind.
    pub left_behind: LeftBehind,
}

/// Gets how many of how many events are recorded.
pub type MoveProgress<'p> = dyn FnMut(u64, u64) -> ControlFlow<()> + 'p;

/// What moves in, and how much room it needs.
pub(crate) struct Load<'s> {
    pub(crate) source: &'s MovingSource,
    sizes: Sizes,
    control: Vec<Vec<u8>>,
    /// Where files are published.
    bucket: Option<&'s Bucket>,
    /// The partitions with files, each with the sequence of its first message.
    first: BTreeMap<u16, u64>,
}

impl<'s> Load<'s> {
    /// Checks that there is a place for the files that move, where they can be written.
    pub(crate) async fn check_place(source: &MovingSource, bucket: Option<&Bucket>) -> Result<(), MoveError> {
        match (source.projects_with_files().next(), bucket) {
            (None, _) => Ok(()),
            (Some(project), None) => Err(MoveError::NoFiles(project)),
            (Some(_), Some(bucket)) => Ok(bucket.try_out().await.map_err(FilesError::from)?),
        }
    }

    /// Reads everything once.
    pub(crate) fn measure(source: &'s MovingSource, max_bytes: i64, bucket: Option<&'s Bucket>) -> Result<Self, MoveError> {
        let control = source.control_records()?;
        let mut sizes = Sizes::default();
        gather(source, &mut |partition, entries| sizes.add(partition, entries))?;
        let limit = u64::try_from(max_bytes).unwrap_or(0) / SHARE;
        match sizes.largest() {
            Some((partition, needed)) if needed > limit => {
                Err(MoveError::NoRoom { partition, needed, wanted: (needed * SHARE).div_ceil(1 << 20) })
            }
            _ => Ok(Self { source, sizes, control, bucket, first: first_messages(source) }),
        }
    }

    /// Whether a partition gets messages.
    pub(crate) fn has(&self, partition: u16) -> bool {
        self.sizes.events(partition) > 0 || self.first.contains_key(&partition)
    }

    /// The sequence of the first message of a partition.
    pub(crate) fn first_message(&self, partition: u16) -> u64 {
        self.first.get(&partition).copied().unwrap_or(1)
    }

    /// Records everything, in the epoch `epoch`, for the cluster of `record`.
    pub(crate) fn record(
        self,
        (runtime, connection): (&Handle, &Connection),
        record: &ClusterRecord,
        epoch: u64,
        progress: &mut MoveProgress<'_>,
    ) -> Result<Moved, MoveError> {
        record_control(&mut ControlStream::open(runtime, connection)?, &self.control)?;
        let wanted = (0..PARTITIONS).filter(|partition| self.has(*partition));
        let wanted: Vec<(u16, u64)> = wanted.map(|partition| (partition, self.first_message(partition))).collect();
        let mut streams = Streams::take_over(runtime, connection, &wanted, epoch)?;
        if let Some(bucket) = self.bucket.filter(|_| !self.first.is_empty()) {
            publish_files(self.source, (runtime, connection), record, bucket, (epoch, &self.first))?;
        }
        let total = self.sizes.all_events();
        let recorded_before = streams.recorded();
        let mut positions = self.source.positions();
        let mut append = |partition, entries| {
            streams.append(partition, entries, &mut positions)?;
            match progress(streams.passed(), total) {
                ControlFlow::Continue(()) => Ok(()),
                ControlFlow::Break(()) => Err(MoveError::Stopped),
            }
        };
        gather(self.source, &mut append)?;
        streams.finish()?;
        positions.finish();
        let documents = documents::record(self.source, &positions, (runtime, connection, record.replicas))?;
        let (organizations, projects) = self.source.counts()?;
        let (bytes, left_behind) = (self.sizes.all_bytes(), self.source.left_behind());
        let projects_with_files = self.source.projects_with_files().count();
        let events = total;
        Ok(Moved { organizations, projects, events, bytes, projects_with_files, recorded_before, documents, left_behind })
    }
}

/// Appends the records to the control log, after those that it has, which must be the first of them.
fn record_control(log: &mut ControlStream, records: &[Vec<u8>]) -> Result<(), MoveError> {
    let mut done = compare(log, records, 0)?;
    while let Some(record) = records.get(done) {
        match log.append_at(done as u64 + 1, record) {
            Ok(()) => done += 1,
            // The first answer about the end was out of date, or another attempt is under way.
            Err(error @ ControlError::Conflict { .. }) => match compare(log, records, done)? {
                same if same == done => return Err(error.into()),
                further => done = further,
            },
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Compares the records of the log after the first `done` with what they should be. Returns how many there are in all.
fn compare(log: &mut ControlStream, records: &[Vec<u8>], mut done: usize) -> Result<usize, MoveError> {
    log.refresh()?;
    let mut is_same = true;
    log.read_after(done as u64, &mut |_, record| {
        is_same = records.get(done).is_some_and(|wanted| wanted == record);
        done += usize::from(is_same);
        if is_same { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    match is_same {
        true => Ok(done),
        false => Err(MoveError::OtherContent("HC_CTL".to_owned())),
    }
}

/// The partitions with files, each with the sequence of the first message of its stream: behind all positions of its files.
fn first_messages(source: &MovingSource) -> BTreeMap<u16, u64> {
    source.partitions_with_files().into_iter().map(|(partition, until)| (partition, sequence_of(until) + 1)).collect()
}

/// Publishes the archives of these partitions for the owner of `epoch`, who has begun it in their streams. Each has the first message of the stream sealed, which has no events. What an earlier attempt has
/// published, perhaps elsewhere, counts no more.
fn publish_files(
    source: &MovingSource,
    (runtime, connection): (&Handle, &Connection),
    record: &ClusterRecord,
    bucket: &Bucket,
    (epoch, first): (u64, &BTreeMap<u16, u64>),
) -> Result<(), MoveError> {
    let open = async { SharedFiles::open_anew(connection, record, bucket).await };
    let files = runtime.block_on(open)?;
    for (partition, first) in first {
        let root = source.lay_out_archive(*partition, last_of(*first))?;
        runtime.block_on(files.replace(*partition, epoch))?;
        files.publish(*partition, &root, &|| false)?;
    }
    Ok(())
}
