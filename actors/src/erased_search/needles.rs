//! What is looked for.

use std::collections::{BTreeMap, HashMap};

use aho_corasick::{AhoCorasick, BuildError, MatchKind};
use headcount_domain::identity::SentKeys;
use headcount_domain::ids::{KeyHasher, OrganizationId, ProjectId, RecordKey};
use headcount_domain::intake::event::{Event, Position};

use crate::registry::{ErasedUntil, Erasure};

/// The keyed hashes of erased ids, and texts.
pub(crate) struct Needles {
    hasher: KeyHasher,
    organizations: HashMap<ProjectId, OrganizationId>,
    /// The erased users of each organization, with the last positions of their erased events.
    users: HashMap<(OrganizationId, RecordKey), UserEnds>,
    others: HashMap<(ProjectId, RecordKey), Position>,
    /// The suppressed ones: nothing may have their hashes, at any position.
    suppressed: Vec<RecordKey>,
    hashes: Option<AhoCorasick>,
    texts: Option<AhoCorasick>,
    /// The number of the text of each pattern, from 1 on.
    numbers: Vec<usize>,
    longest: usize,
}

/// The last positions of a user's erased events.
#[derive(Default)]
struct UserEnds {
    everywhere: Position,
    by_project: HashMap<ProjectId, Position>,
}

impl UserEnds {
    /// Adds those of an erasure. Ids that are still suppressed have none.
    fn add(&mut self, erasure: &Erasure) {
        match &erasure.until {
            _ if !erasure.is_lifted => self.everywhere = Position::MAX,
            ErasedUntil::Everywhere(until) => self.everywhere = self.everywhere.max(*until),
            ErasedUntil::ByProject(ends) => {
                for end in ends {
                    let until = self.by_project.entry(end.project).or_default();
                    *until = end.until.max(*until);
                }
            }
        }
    }

    fn until_in(&self, project: ProjectId) -> Position {
        self.by_project.get(&project).copied().unwrap_or(0).max(self.everywhere)
    }
}

impl Needles {
    /// Looks for the ids of `erasures`, and for `texts`, in any of the forms in which they are stored.
    pub(crate) fn new(
        hasher: &KeyHasher,
        organizations: HashMap<ProjectId, OrganizationId>,
        erasures: &[Erasure],
        texts: &[String],
    ) -> Result<Self, BuildError> {
        let mut users = HashMap::<(OrganizationId, RecordKey), UserEnds>::new();
        let (mut others, mut suppressed) = (HashMap::<(ProjectId, RecordKey), Position>::new(), Vec::new());
        for erasure in erasures {
            erasure.users.iter().for_each(|user| users.entry((erasure.organization, *user)).or_default().add(erasure));
            for other in &erasure.others {
                let (until, known) = (erasure.until_in(other.0), others.entry(*other).or_default());
                *known = if erasure.is_lifted { until.max(*known) } else { Position::MAX };
            }
            if !erasure.is_lifted {
                suppressed.extend(erasure.users.iter().copied().chain(erasure.others.iter().map(|(_, other)| *other)));
            }
        }
        suppressed.sort_unstable();
        suppressed.dedup();
        let patterns: Vec<[u8; 16]> = suppressed.iter().flat_map(|key| forms_of(*key)).collect();
        let hashes = (!patterns.is_empty()).then(|| finder(&patterns)).transpose()?;
        let mut forms: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
        for (number, text) in (1..).zip(texts) {
            for form in [text.clone(), text.to_lowercase()] {
                let escaped = serde_json::to_string(&form).unwrap_or_default();
                let _first = *forms.entry(escaped.trim_matches('"').as_bytes().to_vec()).or_insert(number);
                let _first = *forms.entry(form.into_bytes()).or_insert(number);
            }
        }
        forms.remove(&Vec::new());
        let longest = forms.keys().map(Vec::len).max().unwrap_or(0);
        let (forms, numbers): (Vec<Vec<u8>>, Vec<usize>) = forms.into_iter().unzip();
        let texts = (!forms.is_empty()).then(|| finder(&forms)).transpose()?;
        Ok(Self { hasher: hasher.clone(), organizations, users, others, suppressed, hashes, texts, numbers, longest })
    }

    /// The number of erased ids.
    pub(crate) fn ids(&self) -> usize {
        self.users.len() + self.others.len()
    }

    /// The length of the longest text.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// Whose event it is, if it is an erased one's, or names one.
    pub(super) fn of_event(&self, position: Position, event: &Event) -> Option<&'static str> {
        let SentKeys { user, other } = SentKeys::of(&event.who, &self.hasher);
        self.of_keys(event.project, position, user, other)
    }

    fn of_keys(
        &self,
        project: ProjectId,
        position: Position,
        user: Option<RecordKey>,
        other: Option<RecordKey>,
    ) -> Option<&'static str> {
        let organization = self.organizations.get(&project);
        let ends = user.zip(organization).and_then(|(user, organization)| self.users.get(&(*organization, user)));
        let is_user = ends.is_some_and(|ends| position <= ends.until_in(project));
        let is_other = other.and_then(|other| self.others.get(&(project, other))).is_some_and(|until| position <= *until);
        match (is_user, is_other) {
            (true, _) => Some("the id of an erased user"),
            (false, true) => Some("an erased anonymous id"),
            (false, false) => None,
        }
    }

    /// As [`Needles::of_event`], by ids.
    pub(super) fn of_ids(
        &self,
        project: ProjectId,
        position: Position,
        user: Option<&str>,
        anonymous: Option<&str>,
    ) -> Option<&'static str> {
        let (user, other) = (user.map(|id| self.hasher.user(id)), anonymous.map(|id| self.hasher.anonymous(id)));
        self.of_keys(project, position, user, other)
    }

    /// Whether bytes that belong to a project have the keyed hash of a suppressed id.
    pub(super) fn has_hash(&self, project: ProjectId, bytes: &[u8]) -> bool {
        let Some(hashes) = &self.hashes else { return false };
        let is_its = |pattern: usize| {
            let Some(key) = self.suppressed.get(pattern / 2) else { return false };
            let organization = self.organizations.get(&project);
            let is_user = organization.is_some_and(|organization| self.users.contains_key(&(*organization, *key)));
            is_user || self.others.contains_key(&(project, *key))
        };
        hashes.find_overlapping_iter(bytes).any(|found| is_its(found.pattern().as_usize()))
    }

    /// The number of the first text that the bytes have.
    pub(super) fn text_in(&self, bytes: &[u8]) -> Option<usize> {
        let found = self.texts.as_ref()?.find(bytes)?;
        self.numbers.get(found.pattern().as_usize()).copied()
    }

    /// Whether there are texts to look for.
    pub(super) fn has_texts(&self) -> bool {
        self.texts.is_some()
    }
}

/// The bytes of a key, as keys and as values have them.
fn forms_of(RecordKey(hash): RecordKey) -> [[u8; 16]; 2] {
    [hash.to_be_bytes(), hash.to_le_bytes()]
}

fn finder<P: AsRef<[u8]>>(patterns: &[P]) -> Result<AhoCorasick, BuildError> {
    AhoCorasick::builder().match_kind(MatchKind::Standard).build(patterns)
}

/// The description of a text.
pub(super) fn text(number: usize) -> String {
    format!("text {number}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{ErasureEnd, ErasureStage};

    /// Who has opted in again is found up to where the erasure ends in each project.
    #[test]
    fn ids_that_are_recorded_again_are_looked_for_up_to_the_ends_of_their_erasure() {
        let [first, second, third] = [1, 2, 3].map(ProjectId);
        let (hasher, organization) = (KeyHasher::new([7; 16]), OrganizationId(9));
        let end = |project, until| ErasureEnd { project, until, stage: ErasureStage::Gone };
        let by_project = ErasedUntil::ByProject(vec![end(first, 50), end(second, 5)]);
        let erasure = |user: &str, until, is_lifted| Erasure {
            number: 1,
            organization,
            users: vec![hasher.user(user)],
            others: vec![(second, hasher.anonymous(user))],
            projects: vec![first, second],
            until,
            is_done: true,
            is_lifted,
        };
        let erasures = [
            erasure("ada", by_project.clone(), true),
            erasure("bob", ErasedUntil::Everywhere(20), true),
            erasure("eve", by_project, false),
        ];
        let organizations = HashMap::from([first, second, third].map(|project| (project, organization)));
        let needles = Needles::new(&hasher, organizations, &erasures, &[]).unwrap();
        let is_user = |project, position, user| needles.of_ids(project, position, Some(user), None).is_some();
        let found = |user| {
            [(first, 50), (first, 51), (second, 5), (second, 6), (third, 1)].map(|(project, at)| is_user(project, at, user))
        };
        assert_eq!(found("ada"), [true, false, true, false, false]);
        assert_eq!((is_user(third, 20, "bob"), is_user(first, 21, "bob")), (true, false));
        assert_eq!(found("eve"), [true; 5]);
        let is_other = |position, id| needles.of_ids(second, position, None, Some(id)).is_some();
        assert_eq!(
            [is_other(5, "ada"), is_other(6, "ada"), is_other(20, "bob"), is_other(21, "bob"), is_other(99, "eve")],
            [true, false, true, false, true]
        );
    }
}
