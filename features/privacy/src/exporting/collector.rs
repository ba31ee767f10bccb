//! Collects the events of a subject, and what its identities consist of, in sorts on disk.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::sync::Arc;

use headcount_actors::{RecordSorter, Scans, SortedRecords, SubjectIds, SubjectOwner};
use headcount_domain::facts::Moment;
use headcount_domain::intake::event::EVENT_VERSION;
use headcount_domain::{Event, Instant, KeyHasher, Position, ProjectId, RecordKey, SentKeys};
use headcount_storage::codec;
use serde_json::value::RawValue;

/// The most anonymous ids of others that an artifact lists.
const MAX_OTHERS: usize = 1_000;
/// Stands between a name and a value in a sort. JSON has none.
const END: &[u8] = &[0];

/// What was collected.
pub(super) struct Collected {
    /// Time, project, position, number of the identity, event.
    pub(super) events: SortedRecords,
    /// Number of the identity, project, anonymous id.
    pub(super) anonymous_ids: SortedRecords,
    /// Number of the identity, address, moment.
    pub(super) emails: SortedRecords,
    /// Number of the identity, name, moment, value.
    pub(super) traits: SortedRecords,
    pub(super) found: Found,
}

/// What is found out about the events.
#[derive(Default)]
pub(super) struct Found {
    /// When each identity was first and last seen in each project.
    pub(super) seen: HashMap<(u32, ProjectId), (Instant, Instant)>,
    pub(super) count: u64,
    pub(super) projects: BTreeSet<ProjectId>,
    pub(super) others: BTreeSet<(ProjectId, RecordKey)>,
    pub(super) has_more_others: bool,
}

/// See the module.
pub(super) struct SubjectCollector {
    ids: Arc<SubjectIds>,
    hasher: KeyHasher,
    numbers: HashMap<SubjectOwner, u32>,
    events: RecordSorter,
    anonymous_ids: RecordSorter,
    emails: RecordSorter,
    traits: RecordSorter,
    found: Found,
}

impl SubjectCollector {
    pub(super) fn new(ids: Arc<SubjectIds>, hasher: &KeyHasher, scans: &Scans) -> Self {
        let numbers = (0..).zip(ids.owners()).map(|(number, owner)| (owner, number)).collect();
        Self {
            ids,
            hasher: hasher.clone(),
            numbers,
            events: scans.sorter(1),
            anonymous_ids: scans.sorter(4),
            emails: scans.sorter(4),
            traits: scans.sorter(4),
            found: Found::default(),
        }
    }

    /// Adds an address of an identity that a project knows: the event that reported it may be gone.
    pub(super) fn add_email(&mut self, number: u32, email: &str, at: Moment) -> io::Result<()> {
        self.emails.push(&[&number.to_be_bytes(), email.as_bytes(), END, &moment(at.time, at.position)])
    }

    /// Ends the collecting.
    pub(super) fn finish(self) -> io::Result<Collected> {
        Ok(Collected {
            events: self.events.finish()?,
            anonymous_ids: self.anonymous_ids.finish()?,
            emails: self.emails.finish()?,
            traits: self.traits.finish()?,
            found: self.found,
        })
    }

    fn add_anonymous_id(&mut self, number: u32, owner: SubjectOwner, event: &Event) -> io::Result<()> {
        let Some(id) = event.who.anonymous_id.as_deref() else { return Ok(()) };
        let key = self.hasher.anonymous(id);
        if self.ids.owner(event.project, key) == Some(owner) {
            return self.anonymous_ids.push(&[&number.to_be_bytes(), &event.project.0.to_be_bytes(), id.as_bytes()]);
        }
        // It was linked to somebody else before.
        if self.found.others.len() < MAX_OTHERS {
            self.found.others.insert((event.project, key));
        } else if !self.found.others.contains(&(event.project, key)) {
            self.found.has_more_others = true;
        }
        Ok(())
    }

    fn add_traits(&mut self, number: u32, position: Position, event: &Event) -> io::Result<()> {
        let moment = moment(event.time, position);
        if let Some(email) = event.details.email.as_deref() {
            self.emails.push(&[&number.to_be_bytes(), email.as_bytes(), END, &moment])?;
        }
        if &*event.name != "identify" {
            return Ok(());
        }
        let Some(metadata) = event.details.metadata.as_deref() else { return Ok(()) };
        // Anything but an object has no traits.
        let traits: BTreeMap<String, Box<RawValue>> = serde_json::from_str(metadata).unwrap_or_default();
        for (name, value) in traits {
            // As JSON, so that no byte of it is the one that ends it.
            let name = serde_json::to_vec(&name)?;
            self.traits.push(&[&number.to_be_bytes(), &name, END, &moment, value.get().as_bytes()])?;
        }
        Ok(())
    }
}

/// A time and a position as bytes that are ordered as the moments are.
fn moment(time: Instant, position: Position) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&(time.0.cast_unsigned() ^ 1 << 63).to_be_bytes());
    bytes[8..].copy_from_slice(&position.to_be_bytes());
    bytes
}

impl SubjectCollector {
    /// Takes an event of the subject.
    pub(super) fn take(&mut self, position: Position, event: &Event) -> io::Result<()> {
        let named = SentKeys::of(&event.who, &self.hasher).named();
        let owner = named.and_then(|named| self.ids.owner(event.project, named));
        let Some((owner, number)) = owner.and_then(|owner| Some((owner, *self.numbers.get(&owner)?))) else { return Ok(()) };
        self.add_anonymous_id(number, owner, event)?;
        self.add_traits(number, position, event)?;
        let seen = self.found.seen.entry((number, event.project)).or_insert((event.time, event.time));
        *seen = (seen.0.min(event.time), seen.1.max(event.time));
        self.found.count += 1;
        self.found.projects.insert(event.project);
        let encoded = codec::encode(EVENT_VERSION, event).map_err(io::Error::other)?;
        let at = moment(event.time, position);
        self.events.push(&[&at[..8], &event.project.0.to_be_bytes(), &at[8..], &number.to_be_bytes(), &encoded])
    }
}

/// An event, as it was sorted.
pub(super) struct SortedEvent {
    pub(super) number: u32,
    pub(super) position: Position,
    pub(super) event: Event,
}

impl SortedEvent {
    pub(super) fn decode(record: &[u8]) -> io::Result<Self> {
        let (head, encoded) = record.split_at_checked(8 + 8 + 8 + 4).ok_or_else(cut)?;
        let event = codec::decode(EVENT_VERSION, encoded).map_err(io::Error::other)?;
        let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_be_bytes);
        Ok(Self { number: head[24..].try_into().map_or(0, u32::from_be_bytes), position: number(&head[16..24]), event })
    }
}

/// The error of a record that is not as it was written.
pub(super) fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a record of a sort is cut")
}
