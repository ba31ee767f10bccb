//! The cards of companies and groups: descriptions and figures, in one step if the projects agree
//! on keys.

use super::aliases::aliases_of;
use super::linked::{Linked, Resolved};
use super::parts::{self, Description, Figures, FiguresPartial, FiguresSum, Keys};
use crate::fault::Fault;
use crate::ids::{PublicCompany, RecordKey};
use crate::queries::partial::{Projects, Query, Reader};
use crate::records::Source;
use crate::time::Window;
use serde::{Deserialize, Serialize};

/// The card of a company or group over all projects.
#[derive(Debug)]
pub(super) struct Card {
    pub(super) described: Description,
    pub(super) figures: Figures,
}

/// The card of a company or group in one project.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CardPartial {
    description: Description,
    figures: FiguresPartial,
    /// Whether the figures list the users that other projects may know.
    listed: bool,
}

impl<S: Source> Reader<'_, S> {
    /// Returns the card of a company or group in this project. `alone`: there is no other project.
    fn card(&mut self, keys: &Keys, window: Window, alone: bool) -> Result<CardPartial, Fault> {
        let listed = !alone && self.has_few_users(keys, window)?;
        Ok(CardPartial { description: self.description(keys)?, figures: self.figures(keys, listed, window)?, listed })
    }

    /// Whether a group has few users to list. If counting them requires the list, it counts as
    /// short.
    fn has_few_users(&mut self, keys: &Keys, window: Window) -> Result<bool, Fault> {
        let (window, few) = (self.kept(window), self.project.limits.listed_users);
        for key in keys {
            let users = self.group(*key)?.and_then(|(group, _)| group.count_members(window));
            if users.is_some_and(|users| users > few) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Asks for companies or groups.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct CardsQuery {
    groups: Vec<Keys>,
    window: Window,
    alone: bool,
}

impl Query for CardsQuery {
    type Partial = Vec<CardPartial>;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Vec<CardPartial>, Fault> {
        self.groups.iter().map(|keys| reader.card(keys, self.window, self.alone)).collect()
    }
}

/// Returns companies or groups by their keys, with their figures in a window.
pub(super) async fn cards<P: Projects>(projects: &P, groups: Vec<Keys>, window: Window) -> Result<Vec<Card>, P::Error> {
    let query = CardsQuery { groups: groups.clone(), window, alone: projects.count() == 1 };
    let mut of_groups: Vec<Vec<CardPartial>> = groups.iter().map(|_| Vec::with_capacity(projects.count())).collect();
    for part in projects.scatter(query).await? {
        of_groups.iter_mut().zip(part).for_each(|(parts, part)| parts.push(part));
    }
    merge(projects, groups.into_iter().zip(of_groups).collect(), window).await
}

/// Merges the projects' cards of each company or group.
async fn merge<P: Projects>(projects: &P, groups: Vec<(Keys, Vec<CardPartial>)>, window: Window) -> Result<Vec<Card>, P::Error> {
    let (mut cards, mut unlisted) = (Vec::with_capacity(groups.len()), Vec::new());
    for (at, (keys, parts)) in groups.into_iter().enumerate() {
        let (mut described, mut sum) = (Description::default(), FiguresSum::default());
        let is_listed = parts.iter().all(|part| part.listed);
        for CardPartial { description, figures, .. } in parts {
            described.merge(description);
            sum.add(figures);
        }
        if described.projects > 1 && !is_listed {
            unlisted.push((at, (keys, described.projects)));
        }
        cards.push(Card { described, figures: sum.total() });
    }
    if !unlisted.is_empty() {
        let (places, groups): (Vec<usize>, _) = unlisted.into_iter().unzip();
        let figures = parts::figures(projects, groups, window).await?;
        places.into_iter().zip(figures).for_each(|(at, figures)| cards[at].figures = figures);
    }
    Ok(cards)
}

/// The name of one company or group.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum CardSubject {
    /// The public id of a company. If the company was linked to a domain later, the id stands for
    /// the domain.
    Id(PublicCompany),
    /// The key of a domain or of a group.
    Key(RecordKey),
}

/// Asks for a company or group by a name that may not include all of its keys.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct CardQuery {
    of: CardSubject,
    window: Window,
    alone: bool,
}

impl Query for CardQuery {
    type Partial = Option<(Linked, CardPartial)>;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Self::Partial, Fault> {
        let key = match &self.of {
            CardSubject::Id(company) => reader.company_of(*company)?,
            CardSubject::Key(key) => Some(*key),
        };
        let Some(key) = key else { return Ok(None) };
        let linked = reader.linked(key)?;
        Ok(Some((linked, reader.card(&vec![key], self.window, self.alone)?)))
    }
}

/// Returns a company or group, with its figures in a window; `None` if no project knows the id.
pub(super) async fn card<P: Projects>(projects: &P, of: CardSubject, window: Window) -> Result<Option<Card>, P::Error> {
    let query = CardQuery { of, window, alone: projects.count() == 1 };
    let (linked, parts): (Vec<Linked>, Vec<CardPartial>) = projects.scatter(query).await?.into_iter().flatten().unzip();
    let mut found = match Linked::resolve(&linked) {
        None => return Ok(None),
        Some(Resolved::Alone(key)) => merge(projects, vec![(vec![key], parts)], window).await?,
        Some(Resolved::Linked(company)) => {
            let keys = aliases_of(projects, vec![company]).await?;
            cards(projects, keys, window).await?
        }
    };
    Ok(found.pop())
}
