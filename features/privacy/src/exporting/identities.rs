//! The identities of a subject: what the projects know of them, and how they are shown.

use std::collections::BTreeMap;
use std::io::{self, Write};

use headcount_actors::{SpillDir, SubjectIds, SubjectOwner};
use headcount_api::respond::answer::Timestamp;
use headcount_domain::facts::Moment;
use headcount_domain::queries::KnownIdentity;
use headcount_domain::{IdentityId, Instant, OrganizationId, ProjectId, RecordKey};

use super::attempt::{AttemptError, Course};
use super::collector::cut;
use super::parts::{List, Numbered, SpilledText};
use super::rows::AnonymousIdRow;
use crate::privacy::Privacy;

/// How many identities a shard is asked about at a time.
const IDENTITIES_A_QUESTION: usize = 256;
/// Time and position, in a sort.
const MOMENT: usize = 16;

/// What the projects know of an identity.
#[derive(Debug, Default)]
pub(super) struct KnownOwner {
    pub(super) id: Option<IdentityId>,
    pub(super) project: Option<ProjectId>,
    /// When it was first and last seen in each project.
    seen: BTreeMap<ProjectId, (Instant, Instant)>,
    pub(super) emails: Vec<(Box<str>, Moment)>,
    /// Its company in each project, under the key that was reported first.
    pub(super) companies: BTreeMap<ProjectId, RecordKey>,
}

impl KnownOwner {
    fn add(&mut self, project: ProjectId, known: KnownIdentity) {
        let KnownIdentity { id, seen, email, company, .. } = known;
        self.id = Some(id);
        self.seen.extend(seen.map(|seen| (project, seen)));
        self.emails.extend(email);
        if let Some(company) = company {
            self.companies.insert(project, company);
        }
    }

    /// The id of the identity for clients.
    pub(super) fn public(&self, organization: OrganizationId) -> String {
        self.id.as_ref().map(|id| id.public(organization, self.project.unwrap_or(ProjectId(0)))).unwrap_or_default()
    }

    /// Takes in what its events in a project say of when it was seen. Early events may be gone;
    /// late ones may have come after the last wanted one.
    pub(super) fn saw(&mut self, project: ProjectId, (first, last): (Instant, Instant)) {
        let known = self.seen.entry(project).or_insert((first, last));
        *known = (known.0.min(first), last);
    }

    fn first_seen(&self) -> Option<Instant> {
        self.seen.values().map(|(first, _)| *first).min()
    }

    fn last_seen(&self) -> Option<Instant> {
        self.seen.values().map(|(_, last)| *last).max()
    }
}

/// Asks the projects what they know of identities.
pub(super) fn known_owners(
    (privacy, organization): (&Privacy, OrganizationId),
    ids: &SubjectIds,
    owners: &[SubjectOwner],
    course: &Course,
) -> Result<Vec<KnownOwner>, AttemptError> {
    let mut known: Vec<KnownOwner> =
        owners.iter().map(|(project, _)| KnownOwner { project: *project, ..KnownOwner::default() }).collect();
    for (project, _) in &ids.projects {
        let theirs = |(_, (of, _)): &(usize, &SubjectOwner)| of.is_none_or(|of| of == *project);
        let asked: Vec<(usize, &SubjectOwner)> = owners.iter().enumerate().filter(theirs).collect();
        for asked in asked.chunks(IDENTITIES_A_QUESTION) {
            course.check()?;
            let keys = asked.iter().map(|(_, (_, key))| *key).collect();
            let answers = privacy.subjects.identities((organization, *project), keys, &|| course.is_over())?;
            for ((number, (_, key)), answer) in asked.iter().zip(answers) {
                if let Some(answer) = answer.filter(|answer| answer.key == *key) {
                    known[*number].add(*project, answer);
                }
            }
        }
    }
    Ok(known)
}

/// What identities consist of, in order of their numbers.
pub(super) struct IdentityParts {
    pub(super) anonymous_ids: Numbered,
    pub(super) emails: Numbered,
    pub(super) traits: Numbered,
}

/// Identities that are written.
pub(super) struct WrittenIdentities {
    /// All of them, as a JSON list without its brackets.
    pub(super) list: SpilledText,
    /// Begin and end of the one that was seen last.
    pub(super) last: Option<(u64, u64)>,
    /// How many there are.
    pub(super) count: u64,
}

/// Writes all identities.
pub(super) fn write_identities(
    owners: &[KnownOwner],
    public_ids: &[String],
    mut parts: IdentityParts,
    scratch: &SpillDir,
) -> Result<WrittenIdentities, AttemptError> {
    let mut list = SpilledText::new(scratch)?;
    let (mut last, mut last_seen, mut count) = (None, None, 0);
    for (number, (owner, identity_id)) in (0..).zip(owners.iter().zip(public_ids)) {
        let Some(id) = &owner.id else { continue };
        list.write_all(if count == 0 { b"\n" } else { b",\n" })?;
        let begin = list.len();
        write!(list, "{{\"identity_id\":")?;
        serde_json::to_writer(&mut list, identity_id)?;
        write!(list, ",\"user_id\":")?;
        let user_id = if let IdentityId::User(user) = id { Some(user) } else { None };
        serde_json::to_writer(&mut list, &user_id)?;
        let email = write_emails(&mut list, &mut parts.emails, number)?;
        write!(list, ",\"resolved_identifier\":")?;
        let resolved = email.clone().or_else(|| Some(id.text()).filter(|text| !text.is_empty()));
        serde_json::to_writer(&mut list, &resolved)?;
        write_anonymous_ids(&mut list, &mut parts.anonymous_ids, number)?;
        write_traits(&mut list, &mut parts.traits, number, email.as_deref())?;
        write!(list, ",\"first_seen\":")?;
        serde_json::to_writer(&mut list, &owner.first_seen().map(Timestamp::from))?;
        write!(list, ",\"last_seen\":")?;
        serde_json::to_writer(&mut list, &owner.last_seen().map(Timestamp::from))?;
        list.write_all(b"}")?;
        let seen = owner.last_seen();
        if count == 0 || seen > last_seen {
            (last, last_seen) = (Some((begin, list.len())), seen);
        }
        count += 1;
    }
    Ok(WrittenIdentities { list, last, count })
}

/// Writes the addresses of an identity, and returns the latest.
fn write_emails(out: &mut SpilledText, emails: &mut Numbered, number: u32) -> Result<Option<String>, AttemptError> {
    write!(out, ",\"emails\":[")?;
    let mut list = List::new(out);
    let (mut latest, mut written): (Option<(Vec<u8>, String)>, Option<String>) = (None, None);
    while let Some(record) = emails.next_of(number)? {
        let (email, moment) = split(&record)?;
        let email = text(email)?;
        if written.as_deref() != Some(email) {
            list.push(&email)?;
            written = Some(email.to_owned());
        }
        if latest.as_ref().is_none_or(|(known, _)| **known < *moment) {
            latest = Some((moment.to_vec(), email.to_owned()));
        }
    }
    out.write_all(b"]")?;
    Ok(latest.map(|(_, email)| email))
}

fn write_anonymous_ids(out: &mut SpilledText, ids: &mut Numbered, number: u32) -> Result<(), AttemptError> {
    write!(out, ",\"anonymous_ids\":[")?;
    let mut list = List::new(out);
    let mut written: Option<Vec<u8>> = None;
    while let Some(record) = ids.next_of(number)? {
        if written.as_ref() == Some(&record) {
            continue;
        }
        let (project, id) = record.split_first_chunk().ok_or_else(cut)?;
        let project_id = ProjectId(u64::from_be_bytes(*project)).to_string();
        list.push(&AnonymousIdRow { project_id, anonymous_id: text(id)? })?;
        written = Some(record);
    }
    Ok(out.write_all(b"]")?)
}

/// Writes the latest value of each trait. The e-mail address is the latest that any event reported.
fn write_traits(out: &mut SpilledText, traits: &mut Numbered, number: u32, email: Option<&str>) -> Result<(), AttemptError> {
    write!(out, ",\"traits\":{{")?;
    let mut list = List::new(out);
    let mut waiting: Option<(Vec<u8>, Vec<u8>)> = None;
    let mut put = |name: &[u8], value: &[u8]| -> io::Result<()> {
        let out = list.next()?;
        out.write_all(name)?;
        out.write_all(b":")?;
        out.write_all(value)
    };
    if let Some(email) = email {
        put(EMAIL, &serde_json::to_vec(email)?)?;
    }
    let is_written = |name: &[u8]| name == EMAIL && email.is_some();
    while let Some(record) = traits.next_of(number)? {
        let (name, rest) = split(&record)?;
        let value = rest.get(MOMENT..).ok_or_else(cut)?.to_vec();
        if let Some((before, value)) = waiting.replace((name.to_vec(), value))
            && before != name
            && !is_written(&before)
        {
            put(&before, &value)?;
        }
    }
    if let Some((name, value)) = waiting.filter(|(name, _)| !is_written(name)) {
        put(&name, &value)?;
    }
    Ok(out.write_all(b"}")?)
}

/// The name of the trait that is the e-mail address, as JSON.
const EMAIL: &[u8] = b"\"email\"";

/// A name, and what follows its end.
fn split(record: &[u8]) -> io::Result<(&[u8], &[u8])> {
    let end = record.iter().position(|byte| *byte == 0).ok_or_else(cut)?;
    Ok((&record[..end], &record[end + 1..]))
}

fn text(bytes: &[u8]) -> io::Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| cut())
}
