//! The hashes and texts to find.

use std::collections::{BTreeMap, HashMap};

use aho_corasick::{AhoCorasick, BuildError, MatchKind};
use headcount_control::Erasure;
use headcount_domain::erasure::address_keys;
use headcount_domain::intake::event::SentIds;
use headcount_domain::{Event, KeyHasher, OrganizationId, Position, ProjectId, RecordKey, SentKeys};

/// The keyed hashes of erased ids and addresses, and texts.
pub(crate) struct Needles {
    hasher: KeyHasher,
    organizations: HashMap<ProjectId, OrganizationId>,
    /// The erased users of each organization, with the last positions of their erased events.
    users: HashMap<(OrganizationId, RecordKey), Ends>,
    others: HashMap<(ProjectId, RecordKey), Position>,
    /// The same for erased e-mail addresses.
    emails: HashMap<(OrganizationId, RecordKey), Ends>,
    /// The suppressed keys. No data may have their hashes, at any position.
    suppressed: Vec<RecordKey>,
    hashes: Option<AhoCorasick>,
    texts: Option<AhoCorasick>,
    /// The number of the text of each pattern, from 1 on.
    numbers: Vec<usize>,
    /// The length of the longest text.
    pub(super) longest: usize,
}

/// The last positions of the erased events of a key that all projects of an organization share.
#[derive(Default)]
struct Ends {
    /// Whether no data may have the key, at any position.
    is_suppressed: bool,
    by_project: HashMap<ProjectId, Position>,
}

impl Ends {
    /// Adds the keys of an erasure. It has no positions while its ids are only suppressed.
    fn add(&mut self, erasure: &Erasure) {
        self.is_suppressed |= !erasure.is_lifted;
        for end in &erasure.ends {
            let until = self.by_project.entry(end.project).or_default();
            *until = end.until.max(*until);
        }
    }

    fn until_in(&self, project: ProjectId) -> Position {
        if self.is_suppressed { Position::MAX } else { self.by_project.get(&project).copied().unwrap_or(0) }
    }
}

impl Needles {
    /// Creates the search for the ids of `erasures`, and for `texts`, in all forms in which they
    /// are stored.
    pub(crate) fn new(
        hasher: &KeyHasher,
        organizations: HashMap<ProjectId, OrganizationId>,
        erasures: &[Erasure],
        texts: &[String],
    ) -> Result<Self, BuildError> {
        let (mut users, mut emails) = <(HashMap<_, Ends>, HashMap<_, Ends>)>::default();
        let (mut others, mut suppressed) = (HashMap::<(ProjectId, RecordKey), Position>::new(), Vec::new());
        for erasure in erasures {
            for (ends, keys) in [(&mut users, &erasure.users), (&mut emails, &erasure.emails)] {
                keys.iter().for_each(|key| ends.entry((erasure.organization, *key)).or_default().add(erasure));
            }
            for other in &erasure.others {
                let (until, known) = (erasure.until_in(other.0), others.entry(*other).or_default());
                *known = if erasure.is_lifted { until.max(*known) } else { Position::MAX };
            }
            if !erasure.is_lifted {
                suppressed.extend(erasure.users.iter().chain(&erasure.emails));
                suppressed.extend(erasure.others.iter().map(|(_, other)| *other));
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
        let hasher = hasher.clone();
        Ok(Self { hasher, organizations, users, others, emails, suppressed, hashes, texts, numbers, longest })
    }

    /// The number of erased ids and addresses.
    pub(crate) fn ids(&self) -> usize {
        self.users.len() + self.others.len() + self.emails.len()
    }

    /// Returns a description if an event belongs to an erased identity, or names one.
    pub(super) fn of_event(&self, position: Position, event: &Event) -> Option<&'static str> {
        self.of_ids(event.project, position, &event.who, event.details.email.as_deref())
    }

    /// Like [`Needles::of_event`], for the ids and the reported address of an event.
    pub(super) fn of_ids(
        &self,
        project: ProjectId,
        position: Position,
        who: &SentIds,
        email: Option<&str>,
    ) -> Option<&'static str> {
        let SentKeys { user, other } = SentKeys::of(who, &self.hasher);
        let organization = self.organizations.get(&project);
        let is_erased = |keys: &HashMap<_, Ends>, key| {
            let ends = organization.and_then(|organization| keys.get(&(*organization, key)));
            ends.is_some_and(|ends| position <= ends.until_in(project))
        };
        if user.is_some_and(|user| is_erased(&self.users, user)) {
            return Some("the id of an erased user");
        }
        if other.and_then(|other| self.others.get(&(project, other))).is_some_and(|until| position <= *until) {
            return Some("an erased anonymous id");
        }
        let mut addresses = address_keys(who, email, &self.hasher);
        addresses.any(|email| is_erased(&self.emails, email)).then_some("an erased e-mail address")
    }

    /// Whether bytes of a project contain the keyed hash of a suppressed id or address.
    pub(super) fn has_hash(&self, project: ProjectId, bytes: &[u8]) -> bool {
        let Some(hashes) = &self.hashes else { return false };
        let is_its = |pattern: usize| {
            let Some(key) = self.suppressed.get(pattern / 2) else { return false };
            let organization = self.organizations.get(&project);
            let is_of =
                |keys: &HashMap<_, Ends>| organization.is_some_and(|organization| keys.contains_key(&(*organization, *key)));
            is_of(&self.users) || is_of(&self.emails) || self.others.contains_key(&(project, *key))
        };
        hashes.find_overlapping_iter(bytes).any(|found| is_its(found.pattern().as_usize()))
    }

    /// The number of the first text that the bytes contain.
    pub(super) fn text_in(&self, bytes: &[u8]) -> Option<usize> {
        let found = self.texts.as_ref()?.find(bytes)?;
        self.numbers.get(found.pattern().as_usize()).copied()
    }

    /// Whether there are texts to find.
    pub(super) fn has_texts(&self) -> bool {
        self.texts.is_some()
    }
}

/// The bytes of a key, in keys and in values.
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
    use headcount_control::{ErasureEnd, ErasureStage};

    /// After an opt-in, data are found up to the end of the erasure in each project.
    #[test]
    fn ids_that_are_recorded_again_are_looked_for_up_to_the_ends_of_their_erasure() {
        let [first, second, third] = [1, 2, 3].map(ProjectId);
        let (hasher, organization) = (KeyHasher::new([7; 16]), OrganizationId(9));
        let end = |project, until| ErasureEnd { project, until, stage: ErasureStage::Gone };
        let two = vec![end(first, 50), end(second, 5)];
        let erasure = |user: &str, ends, is_lifted| Erasure {
            number: 1,
            organization,
            users: vec![hasher.user(user)],
            others: vec![(second, hasher.anonymous(user))],
            emails: vec![hasher.email(&format!("{user}@acme.example"))],
            ends,
            is_done: true,
            is_lifted,
        };
        let erasures = [
            erasure("ada", two.clone(), true),
            erasure("bob", [first, second, third].map(|project| end(project, 20)).to_vec(), true),
            erasure("eve", two, false),
        ];
        let organizations = HashMap::from([first, second, third].map(|project| (project, organization)));
        let needles = Needles::new(&hasher, organizations, &erasures, &[]).unwrap();
        let nobody = SentIds::default;
        let is_user = |project, position, user: &str| {
            let who = SentIds { user_id: Some(user.into()), ..nobody() };
            let email = format!(" {}@Acme.example", user.to_uppercase());
            let by = [needles.of_ids(project, position, &who, None), needles.of_ids(project, position, &nobody(), Some(&email))];
            assert_eq!(by[0].is_some(), by[1].is_some(), "by id and by address");
            by[0].is_some()
        };
        let found = |user| {
            [(first, 50), (first, 51), (second, 5), (second, 6), (third, 1)].map(|(project, at)| is_user(project, at, user))
        };
        assert_eq!(found("ada"), [true, false, true, false, false]);
        assert_eq!((is_user(third, 20, "bob"), is_user(first, 21, "bob")), (true, false));
        assert_eq!(found("eve"), [true; 5]);
        let is_other = |position, id: &str| {
            let who = SentIds { anonymous_id: Some(id.into()), ..nobody() };
            needles.of_ids(second, position, &who, None).is_some()
        };
        assert_eq!(
            [is_other(5, "ada"), is_other(6, "ada"), is_other(20, "bob"), is_other(21, "bob"), is_other(99, "eve")],
            [true, false, true, false, true]
        );
    }
}
