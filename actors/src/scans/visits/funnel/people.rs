//! Who reached a step, or stopped at it.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use headcount_domain::ProjectId;
use headcount_domain::figures::{FunnelPeople, FunnelPeopleQuestion, FunnelPerson, PeoplePlace};
use headcount_domain::queries::EntityNamesQuery;

use super::super::super::error::{Result, check};
use super::super::super::events::Scan;
use super::super::super::shared::Scans;
use super::chains::visit_chains;
use super::{StepsQuestion, find_steps};
use crate::shard::AskError;

/// How many names the shard is asked for at a time, so that others have their turn.
const NAMES_A_QUESTION: usize = 64;

impl Scans {
    /// Lists who reached a step of a funnel, or stopped at it. Each page costs a pass over the
    /// project's events. Dropping the future ends it.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn funnel_people(&self, project: ProjectId, question: FunnelPeopleQuestion) -> Result<FunnelPeople, AskError> {
        self.scan(project, move |scan, sort_bytes| {
            let (places, has_more) = find(&scan, &question, sort_bytes)?;
            let mut people = Vec::with_capacity(places.len());
            for some in places.chunks(NAMES_A_QUESTION) {
                check(scan.cancelled)?;
                let query = EntityNamesQuery { entities: some.iter().map(|place| (place.key, place.is_company)).collect() };
                let names = scan.ask(query)?;
                people.extend(some.iter().zip(names).map(|(place, name)| FunnelPerson { place: *place, name }));
            }
            Ok(FunnelPeople { people, has_more })
        })
        .await
    }
}

/// Returns the first places after that of the question, and whether more follow.
fn find(scan: &Scan<'_>, question: &FunnelPeopleQuestion, sort_bytes: usize) -> Result<(Vec<PeoplePlace>, bool)> {
    let FunnelPeopleQuestion { window, predicate, steps, step, dropped, after, limit } = question;
    scan.check_is_kept(window.start)?;
    let is_last = step + 1 == steps.steps.len();
    if *dropped && is_last {
        return Ok((Vec::new(), false));
    }
    let asked = StepsQuestion { windows: [Some(*window), None], predicate, steps, breakdown: None };
    let found = find_steps(scan, &asked, sort_bytes)?;
    let (mut page, mut has_more) = (BTreeSet::new(), false);
    let stops_here = |depth: usize| depth == step + 1;
    visit_chains(scan, steps, found, sort_bytes, &mut |chains| {
        let links = chains.chain.map_or(&[][..], |chain| chain.links());
        let Some(link) = links.get(*step).filter(|_| !dropped || stops_here(links.len())) else { return Ok(()) };
        let place = PeoplePlace { at: Reverse(link.at.time), key: chains.entity.key, is_company: chains.entity.is_company };
        if after.is_none_or(|after| place > after) {
            page.insert(place);
        }
        if page.len() > *limit {
            page.pop_last();
            has_more = true;
        }
        Ok(())
    })?;
    Ok((page.into_iter().collect(), has_more))
}
