//! Writes an artifact from what was collected.

use std::collections::HashMap;
use std::io::{self, Write};
use std::time::{Duration, Instant as Stopwatch};

use headcount_actors::{RecordSorter, SortedRecords};
use headcount_api::respond::answer::Timestamp;
use headcount_domain::queries::{CompanyNames, company_names, group_names};
use headcount_domain::{Event, Instant, OrganizationId, RecordKey};
use tokio::runtime::Handle;

use super::attempt::{AttemptError, Course};
use super::collector::{Collected, Found, SortedEvent, cut};
use super::identities::{IdentityParts, KnownOwner, write_identities};
use super::key_counts::{KeyCounts, Ranking};
use super::parts::{List, Numbered, SpilledText};
use super::rows::{CompanyRow, EventRow, GroupRow, OrderRow};
use super::sessions::SessionMaker;
use crate::artifacts::ArtifactWriter;
use crate::export_state::Artifact;
use crate::privacy::Privacy;
use crate::request::PrivacySubject;
use crate::subject_answer::PrivacySubjectAnswer;

/// The format, as the artifact names it.
const FORMAT: &str = "headcount.export.v1";
/// How many events are written together, at most.
const EVENTS_TOGETHER: usize = 256;
/// How many bytes of them are in memory, about.
const BYTES_TOGETHER: usize = 1 << 20;
/// The most companies whose names are remembered.
const MAX_KNOWN_COMPANIES: usize = 4_096;
/// How many groups are asked about at a time.
const GROUPS_A_QUESTION: usize = 256;
/// How often the request says how far the export is.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);

/// What an artifact is made of and for.
pub(super) struct Making<'m> {
    pub(super) privacy: &'m Privacy,
    pub(super) organization: OrganizationId,
    pub(super) course: &'m Course,
    /// Says how many events are written, and how many there are.
    pub(super) progress: &'m dyn Fn(u64, u64),
}

/// What is counted of the events while they are written.
struct Parts {
    sessions: SessionMaker,
    orders: SpilledText,
    order_count: u64,
    companies: KeyCounts,
    groups: KeyCounts,
    known_companies: HashMap<RecordKey, Option<CompanyNames>>,
}

impl Making<'_> {
    fn sorter(&self) -> RecordSorter {
        self.privacy.parts.scans.sorter(4)
    }

    /// Writes the artifact. Returns it, and the number of identities.
    pub(super) fn write(
        &self,
        subject: &PrivacySubject,
        collected: Collected,
        mut owners: Vec<KnownOwner>,
        at: Instant,
        mut out: ArtifactWriter,
    ) -> Result<(Artifact, u64), AttemptError> {
        let Collected { events, anonymous_ids, emails, traits, found } = collected;
        let Found { seen, count, projects, others, has_more_others } = found;
        for ((number, project), seen) in seen {
            if let Some(owner) = owners.get_mut(number as usize) {
                owner.saw(project, seen);
            }
        }
        let public_ids: Vec<String> = owners.iter().map(|owner| owner.public(self.organization)).collect();
        let parts = [anonymous_ids, emails, traits].map(Numbered::new);
        let [anonymous_ids, emails, traits] = parts;
        let parts = IdentityParts { anonymous_ids, emails, traits };
        let identities = write_identities(&owners, &public_ids, parts, self.privacy.parts.scans.scratch())?;
        write!(out, "{{\"format\":\"{FORMAT}\",\n\"subject\":")?;
        serde_json::to_writer(&mut out, &PrivacySubjectAnswer::from(subject))?;
        out.write_all(b",\n\"identity\":")?;
        let (bytes, identity_count) = (identities.list.len(), identities.count);
        let mut list = identities.list.finish()?;
        match identities.last {
            Some((begin, end)) => list.copy(begin, end, &mut out)?,
            None => out.write_all(b"null")?,
        }
        out.write_all(b",\n\"identities\":[")?;
        list.copy(0, bytes, &mut out)?;
        out.write_all(b"],\n\"events\":[")?;
        let mut parts = Parts {
            sessions: SessionMaker::new(self.sorter()),
            orders: SpilledText::new(self.privacy.parts.scans.scratch())?,
            order_count: 0,
            companies: KeyCounts::new(self.sorter()),
            groups: KeyCounts::new(self.sorter()),
            known_companies: HashMap::new(),
        };
        self.write_events(events, count, (&owners, &public_ids), &mut parts, &mut out)?;
        self.write_parts(parts, &public_ids, &mut out)?;
        write!(out, ",\n\"generated_at\":")?;
        serde_json::to_writer(&mut out, &Timestamp::from(at))?;
        out.write_all(b"}\n")?;
        self.course.check()?;
        let (bytes, sha256) = out.finish()?;
        let (projects, others) = (projects.into_iter().collect(), others.into_iter().collect());
        Ok((Artifact { bytes, sha256, projects, others, has_more_others }, identity_count))
    }

    fn write_events(
        &self,
        mut events: SortedRecords,
        total: u64,
        owners: (&[KnownOwner], &[String]),
        parts: &mut Parts,
        out: &mut ArtifactWriter,
    ) -> Result<(), AttemptError> {
        (self.progress)(0, total);
        let (mut done, mut noted) = (0, Stopwatch::now());
        let mut list = List::new(out);
        loop {
            self.course.check()?;
            let (mut together, mut bytes) = (Vec::new(), 0);
            while together.len() < EVENTS_TOGETHER && bytes < BYTES_TOGETHER {
                let Some(record) = events.next()? else { break };
                bytes += record.len();
                together.push(SortedEvent::decode(record)?);
            }
            if together.is_empty() {
                break;
            }
            self.write_together(&together, owners, parts, &mut list)?;
            done += together.len() as u64;
            if noted.elapsed() >= PROGRESS_EVERY {
                (self.progress)(done, total);
                noted = Stopwatch::now();
            }
        }
        out.write_all(b"]")?;
        (self.progress)(done, total);
        Ok(())
    }

    fn write_together(
        &self,
        events: &[SortedEvent],
        (owners, public_ids): (&[KnownOwner], &[String]),
        parts: &mut Parts,
        list: &mut List<'_, ArtifactWriter>,
    ) -> Result<(), AttemptError> {
        let companies: Vec<Option<RecordKey>> = events.iter().map(|sorted| self.company(sorted, owners)).collect();
        self.learn_companies(&companies, &mut parts.known_companies)?;
        for (SortedEvent { number, position, event }, company) in events.iter().zip(companies) {
            let company = company.and_then(|key| parts.known_companies.get(&key)?.as_ref());
            let identity_id = public_ids.get(*number as usize).map_or("", String::as_str);
            let company_id = company.map(|company| company.company_id.as_str());
            list.push(&EventRow::of(*position, event, identity_id, company_id))?;
            parts.sessions.add(*number, *position, event, public_ids)?;
            if let Some(money) = event.money.as_ref().filter(|money| !money.amount.is_zero()) {
                parts.orders.write_all(if parts.order_count == 0 { b"\n" } else { b",\n" })?;
                serde_json::to_writer(&mut parts.orders, &OrderRow::of(*position, event, money))?;
                parts.order_count += 1;
            }
            if let Some(CompanyNames { company_id, key, name, domain }) = company {
                parts.companies.push(company_id.as_bytes(), &serde_json::to_vec(&(key, name, domain))?)?;
            }
            if let Some(group) = group(event) {
                parts.groups.push(&serde_json::to_vec(&group)?, &[])?;
            }
        }
        Ok(())
    }

    /// The company of an event: its own, else that of its identity.
    fn company(&self, SortedEvent { number, event, .. }: &SortedEvent, owners: &[KnownOwner]) -> Option<RecordKey> {
        let own = event.company.as_ref().map(|company| self.privacy.parts.hasher().company(company.as_str()));
        own.or_else(|| owners.get(*number as usize)?.companies.get(&event.project).copied())
    }

    fn learn_companies(
        &self,
        companies: &[Option<RecordKey>],
        known: &mut HashMap<RecordKey, Option<CompanyNames>>,
    ) -> Result<(), AttemptError> {
        if known.len() > MAX_KNOWN_COMPANIES {
            known.clear();
        }
        let mut asked: Vec<RecordKey> = companies.iter().flatten().copied().filter(|key| !known.contains_key(key)).collect();
        asked.sort_unstable();
        asked.dedup();
        if asked.is_empty() {
            return Ok(());
        }
        let projects = self.privacy.parts.organization(self.organization);
        let names = Handle::current().block_on(company_names(&projects, asked.clone()))?;
        known.extend(asked.into_iter().zip(names));
        Ok(())
    }

    fn write_parts(&self, parts: Parts, public_ids: &[String], out: &mut ArtifactWriter) -> Result<(), AttemptError> {
        let Parts { sessions, orders, companies, groups, .. } = parts;
        out.write_all(b",\n\"sessions\":[")?;
        let mut list = List::new(out);
        sessions.finish(public_ids, &mut |json| list.next()?.write_all(json))?;
        out.write_all(b"],\n\"orders\":[")?;
        let bytes = orders.len();
        orders.finish()?.copy(0, bytes, out)?;
        out.write_all(b"],\n\"companies\":[")?;
        self.ranked_companies(companies)?.finish(&mut List::new(out))?;
        out.write_all(b"],\n\"groups\":[")?;
        self.ranked_groups(groups)?.finish(&mut List::new(out))?;
        Ok(out.write_all(b"]")?)
    }

    fn ranked_companies(&self, companies: KeyCounts) -> Result<Ranking, AttemptError> {
        let mut ranking = Ranking::new(self.sorter());
        companies.finish(|company_id, names, events| {
            let (key, name, domain): (String, Option<String>, Option<String>) = serde_json::from_slice(names)?;
            let company_id = String::from_utf8(company_id.to_vec()).map_err(|_| cut())?;
            let row = CompanyRow { company_id, name, domain, events };
            ranking.push(events, row.name.as_deref(), &[&key], &row)
        })?;
        Ok(ranking)
    }

    fn ranked_groups(&self, groups: KeyCounts) -> Result<Ranking, AttemptError> {
        let mut ranking = Ranking::new(self.sorter());
        let mut together: Vec<((String, String), u64)> = Vec::new();
        let mut rank = |together: &mut Vec<((String, String), u64)>| -> Result<(), AttemptError> {
            self.course.check()?;
            let groups: Vec<(String, String)> = together.iter().map(|(group, _)| group.clone()).collect();
            let projects = self.privacy.parts.organization(self.organization);
            let names = Handle::current().block_on(group_names(&projects, &groups))?;
            for (((group_type, group_key), events), name) in together.drain(..).zip(names) {
                let row = GroupRow { group_type, group_key, name, events };
                ranking.push(events, row.name.as_deref(), &[&row.group_key, &row.group_type], &row)?;
            }
            Ok(())
        };
        let mut failed = None;
        groups
            .finish(|group, _, events| {
                together.push((serde_json::from_slice(group)?, events));
                if together.len() >= GROUPS_A_QUESTION && failed.is_none() {
                    failed = rank(&mut together).err();
                    together.clear();
                }
                if failed.is_some() { Err(io::Error::other("a project did not answer")) } else { Ok(()) }
            })
            .map_err(|error| failed.take().unwrap_or_else(|| error.into()))?;
        if !together.is_empty() {
            rank(&mut together)?;
        }
        Ok(ranking)
    }
}

/// The group of an event, unless that is a company.
fn group(event: &Event) -> Option<(&str, &str)> {
    let (kind, id) = (event.details.group_type.as_deref()?, event.details.group_id.as_deref()?);
    (kind != "company").then_some((kind, id))
}
