//! The companies of identities, and the domains of companies: what the accounts of events are made
//! of.

use std::io;

use headcount_domain::company::CompanyKey;
use headcount_domain::queries::{AssociationsQuery, CompanyLinksQuery};
use headcount_domain::{Event, IdentityLink, KeyHasher, Position, RecordKey};

use super::super::error::{Result, check};
use super::super::events::{IDS_A_QUESTION, Scan, Tally, TallyError};
use super::super::external_sort::Sorter;
use super::super::group_ids::GroupIds;
use super::super::identities::{Identities, KEY, bytes, key_of};
use super::super::sealed_group::SealedGroup;
use super::pinned::{FirstPins, Pin, Pins};

/// The value of an id that reported no company.
const NO_COMPANY: RecordKey = RecordKey(0);

/// What events report of companies.
pub(super) struct Companies {
    /// The first company of each identity.
    pub(super) of_identities: FirstPins,
    /// The domains of companies, as events reported them.
    pub(super) links: Pins,
}

impl Companies {
    /// Reads what all events report. One pass over the project's events, which sorts what it finds.
    pub(super) fn read(scan: &Scan<'_>, sort_bytes: usize) -> Result<Self> {
        let (hasher, scratch) = (scan.hasher(), scan.scratch());
        let reader = CompanyReader { hasher, reads_all_ids: scan.floor.is_some() };
        let mut tally = CompanyTally {
            reader: &reader,
            identities: Identities::new(scan, sort_bytes),
            reported: Pins::new(scratch, sort_bytes),
            domains: Pins::new(scratch, sort_bytes),
        };
        scan.tally(0, None, &|group: &SealedGroup<'_>| reader.read(group), &mut tally)?;
        let CompanyTally { identities, reported, domains, .. } = tally;
        let (mut identities, mut resolved) = (identities.resolve(scan)?, Pins::new(scratch, sort_bytes));
        for pin in reported.finish()? {
            check(scan.cancelled)?;
            let pin = pin?;
            resolved.push(Pin { key: identities.resolve(pin.key)?, ..pin })?;
        }
        let of_identities = resolved.finish()?;
        let of_identities =
            if scan.floor.is_some() { with_those_of_the_shard(scan, of_identities, sort_bytes)? } else { of_identities };
        Ok(Self { of_identities, links: domains })
    }
}

/// Adds the companies that events below the project's floor reported: the shard knows them.
fn with_those_of_the_shard(scan: &Scan<'_>, found: FirstPins, sort_bytes: usize) -> Result<FirstPins> {
    let mut all = Pins::new(scan.scratch(), sort_bytes);
    let mut asked = Vec::new();
    let ask = |identities: Vec<RecordKey>, all: &mut Pins| -> Result<()> {
        check(scan.cancelled)?;
        let query = AssociationsQuery { identities: identities.clone() };
        let known = scan.ask(query)?;
        for (key, association) in identities.into_iter().zip(known) {
            if let Some(first) = association.filter(|first| first.since <= scan.until) {
                all.push(Pin { key, position: first.since, value: first.company })?;
            }
        }
        Ok(())
    };
    for pin in found {
        let pin = pin?;
        asked.push(pin.key);
        if pin.value != NO_COMPANY {
            all.push(pin)?;
        }
        if asked.len() >= IDS_A_QUESTION {
            ask(std::mem::take(&mut asked), &mut all)?;
        }
    }
    ask(asked, &mut all)?;
    Ok(all.finish()?)
}

/// Adds the links of some companies that the shard knows to `links`: an erased event may have
/// reported one.
pub(super) fn add_known_links(scan: &Scan<'_>, companies: Sorter<KEY>, links: &mut Pins) -> Result<()> {
    let ask = |companies: Vec<RecordKey>, links: &mut Pins| -> Result<()> {
        check(scan.cancelled)?;
        let query = CompanyLinksQuery { companies: companies.clone() };
        let known = scan.ask(query)?;
        for (key, link) in companies.into_iter().zip(known) {
            if let Some(link) = link.filter(|link| link.reported_at.position <= scan.until) {
                links.push(Pin { key, position: link.reported_at.position, value: link.domain })?;
            }
        }
        Ok(())
    };
    let mut asked = Vec::new();
    for company in companies.finish()? {
        asked.push(key_of(&company?));
        if asked.len() >= IDS_A_QUESTION {
            ask(std::mem::take(&mut asked), links)?;
        }
    }
    ask(asked, links)
}

/// Collects distinct keys of companies, on disk.
pub(super) fn company_keys(scan: &Scan<'_>, sort_bytes: usize) -> Sorter<KEY> {
    Sorter::new(scan.scratch(), KEY, sort_bytes)
}

/// A company as bytes of [`company_keys`].
pub(super) fn company_bytes(company: RecordKey) -> [u8; KEY] {
    bytes(company)
}

struct CompanyReader<'r> {
    hasher: &'r KeyHasher,
    /// Whether ids that report nothing are read too.
    reads_all_ids: bool,
}

/// What a row group reports.
#[derive(Default)]
struct ReadCompanies {
    links: Vec<IdentityLink>,
    reported: Vec<Pin>,
    domains: Vec<Pin>,
}

impl CompanyReader<'_> {
    fn read(&self, group: &SealedGroup<'_>) -> Result<ReadCompanies, TallyError> {
        let (rows, mut ids) = (group.counted()?, GroupIds::read(group, self.hasher)?);
        let mut read = ReadCompanies { links: ids.links(group, &rows), ..ReadCompanies::default() };
        if rows.is_empty() {
            return Ok(read);
        }
        let texts = ["company", "email_company", "company_domain"].map(|name| group.texts(name));
        let [companies, emails, domains] = texts;
        let (companies, emails, domains): (_, _, _) = (companies?, emails?, domains?);
        let (visitors, positions) = (group.visitors()?, group.positions()?);
        let key = |text: &str| self.hasher.company(text);
        rows.for_each(|row| {
            let company = companies.value(companies.codes()[row]);
            let reported = company.or_else(|| emails.value(emails.codes()[row]));
            let position = positions[row];
            if let (Some(company), Some(domain)) = (company, domains.value(domains.codes()[row]))
                && takes_domain(company)
            {
                read.domains.push(Pin { key: key(company), position, value: key(domain) });
            }
            if reported.is_none() && !self.reads_all_ids {
                return;
            }
            let named = ids.named(row).or_else(|| visitors[row].map(|visitor| self.hasher.visitor(visitor)));
            if let Some(named) = named {
                read.reported.push(pin_of(named, position, reported.map(key)));
            }
        });
        Ok(read)
    }
}

/// Whether a company can be linked to a domain, which a company that is a domain itself can not.
fn takes_domain(company: &str) -> bool {
    !CompanyKey::from_recorded(company).is_domain()
}

fn pin_of(named: RecordKey, position: Position, company: Option<RecordKey>) -> Pin {
    match company {
        Some(value) => Pin { key: named, position, value },
        // Comes after all that were reported.
        None => Pin { key: named, position: Position::MAX, value: NO_COMPANY },
    }
}

struct CompanyTally<'t, 'h> {
    reader: &'t CompanyReader<'t>,
    identities: Identities<'h>,
    /// The companies that ids reported.
    reported: Pins,
    /// The domains that companies reported.
    domains: Pins,
}

impl CompanyTally<'_, '_> {
    fn report(&mut self, pin: Pin) -> io::Result<()> {
        self.identities.add(pin.key)?;
        self.reported.push(pin)
    }
}

impl Tally<ReadCompanies> for CompanyTally<'_, '_> {
    fn group(&mut self, read: ReadCompanies) -> Result<()> {
        read.links.into_iter().try_for_each(|link| self.identities.link(link))?;
        read.domains.into_iter().try_for_each(|pin| self.domains.push(pin))?;
        Ok(read.reported.into_iter().try_for_each(|pin| self.report(pin))?)
    }

    fn event(&mut self, position: Position, event: &Event) -> Result<()> {
        let hasher = self.reader.hasher;
        let keys = self.identities.see(position, event)?;
        let key = |company: &CompanyKey| hasher.company(company.as_str());
        if let (Some(company), Some(domain)) = (&event.company, &event.company_domain)
            && !company.is_domain()
        {
            self.domains.push(Pin { key: key(company), position, value: key(domain) })?;
        }
        let reported = event.company.as_ref().or(event.email_company.as_ref());
        match keys.named().filter(|_| reported.is_some() || self.reader.reads_all_ids) {
            Some(named) => Ok(self.report(pin_of(named, position, reported.map(key)))?),
            None => Ok(()),
        }
    }
}
