//! Moves an installation into a new cluster.
//!
//! - A first pass reads everything, so that unreadable data or too little room is found before
//!   anything is written.
//! - Then the control data are appended to the control log, and the events to the streams of their
//!   partitions, in an epoch of this attempt. The messages of an earlier attempt are read again,
//!   with their chain, and compared. New messages follow them.
//! - Documents come last, because they may have the new positions of events.
//!
//! A project that has lost events by its retention moves with the files of its archive, which are
//! published as those of a node (`files`). The stream of its partition begins after the positions
//! in the files.

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

/// The moved events may take one in this many bytes of a stream.
const SHARE: u64 = 2;

/// The data that was moved in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Moved {
    /// The number of organizations.
    pub organizations: usize,
    /// The number of projects.
    pub projects: usize,
    /// The number of events, including duplicates and floors.
    pub events: u64,
    /// The bytes that they take on each broker.
    pub bytes: u64,
    /// The number of projects that have lost events and moved with the files of their archives.
    pub projects_with_files: usize,
    /// The number of these events that an earlier attempt had recorded.
    pub recorded_before: u64,
    /// The number of documents of features, such as privacy requests.
    pub documents: usize,
    /// The data that was left behind.
    pub left_behind: LeftBehind,
}

/// Gets the number of recorded events and of all events.
pub type MoveProgress<'p> = dyn FnMut(u64, u64) -> ControlFlow<()> + 'p;

/// The data to move in, and the room that it needs.
pub(crate) struct Load<'s> {
    pub(crate) source: &'s MovingSource,
    sizes: Sizes,
    control: Vec<Vec<u8>>,
    /// The place for the files.
    bucket: Option<&'s Bucket>,
    /// The partitions with files, each with the sequence of its stream's first message.
    first: BTreeMap<u16, u64>,
}

impl<'s> Load<'s> {
    /// Checks that there is a writable place for the files to move.
    pub(crate) async fn check_place(source: &MovingSource, bucket: Option<&Bucket>) -> Result<(), MoveError> {
        match (source.projects_with_files().next(), bucket) {
            (None, _) => Ok(()),
            (Some(project), None) => Err(MoveError::NoFiles(project)),
            (Some(_), Some(bucket)) => Ok(bucket.try_out().await.map_err(FilesError::from)?),
        }
    }

    /// Reads everything once, and measures the room that it needs.
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

    /// Records everything in the epoch `epoch`, for the cluster of `record`.
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
        let (bytes, left_behind) = (self.sizes.all_bytes(), self.source.left_behind().clone());
        let projects_with_files = self.source.projects_with_files().count();
        let events = total;
        Ok(Moved { organizations, projects, events, bytes, projects_with_files, recorded_before, documents, left_behind })
    }
}

/// Appends the records to the control log. The records that it has already must be the first of
/// them.
fn record_control(log: &mut ControlStream, records: &[Vec<u8>]) -> Result<(), MoveError> {
    let mut done = compare(log, records, 0)?;
    while let Some(record) = records.get(done) {
        match log.append_at(done as u64 + 1, record) {
            Ok(()) => done += 1,
            // The first answer about the end was out of date, or another attempt is running.
            Err(error @ ControlError::Conflict { .. }) => match compare(log, records, done)? {
                same if same == done => return Err(error.into()),
                further => done = further,
            },
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Compares the records of the log after the first `done` with the expected ones. Returns the total
/// number of records in the log.
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

/// The partitions with files, each with the sequence of its stream's first message, which is after
/// all positions in the files.
fn first_messages(source: &MovingSource) -> BTreeMap<u16, u64> {
    source.partitions_with_files().into_iter().map(|(partition, until)| (partition, sequence_of(until) + 1)).collect()
}

/// Publishes the archives of these partitions for the owner of `epoch`, which has begun in their
/// streams. Each archive is sealed up to the first message, which has no events. Archives of an
/// earlier attempt, perhaps at another place, are replaced.
fn publish_files(
    source: &MovingSource,
    (runtime, connection): (&Handle, &Connection),
    record: &ClusterRecord,
    bucket: &Bucket,
    (epoch, first): (u64, &BTreeMap<u16, u64>),
) -> Result<(), MoveError> {
    let open = async { SharedFiles::open_new(connection, record, bucket).await };
    let files = runtime.block_on(open)?;
    for (partition, first) in first {
        let root = source.lay_out_archive(*partition, last_of(*first))?;
        runtime.block_on(files.replace(*partition, epoch))?;
        files.publish(*partition, &root, &|| false)?;
    }
    Ok(())
}
