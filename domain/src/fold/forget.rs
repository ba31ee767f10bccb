//! Takes erased people out of a saved state whose early events are gone, so that no replay can
//! rebuild it without them.
//!
//! Facts keep all days, and every sum is a sum of contributions of facts. So a person's
//! contributions are taken out as in a merge, and the remaining state is the state of a history
//! without the person. Three things can't be undone: frozen rows below the floor still count the
//! person, as do the counts by day of receipt, since facts lack the times of receipt; and numbers
//! of terms and groups are not assigned again.

use std::collections::BTreeSet;

use crate::company::group::{FormerMembers, Group};
use crate::contribution::Sign;
use crate::erasure::ErasedKeys;
use crate::fault::Fault;
use crate::fold::Fold;
use crate::identity::{EmailOwners, IdentitySlot};
use crate::ids::{KeyHasher, RecordKey};
use crate::project::Project;
use crate::records::{Record, SavedRecords, Source, page_key};
use crate::versions::Touched;

/// The removal of people, in steps. After each step, the project must be saved.
#[derive(Debug)]
pub struct Forgetting {
    /// The identities that remain to be taken out, the last one first.
    people: Vec<RecordKey>,
    /// The keys of all these identities, and of the ids linked to them.
    keys: BTreeSet<RecordKey>,
    /// The companies and groups without any activity, once the people can no longer be found.
    void: Option<BTreeSet<RecordKey>>,
}

impl Forgetting {
    /// Looks up the identities with erased keys, and the ids linked to them. Returns `None` if
    /// there are none.
    ///
    /// # Errors
    /// A record could not be read.
    pub fn begin(erased: &ErasedKeys, saved: &impl SavedRecords) -> Result<Option<Self>, Fault> {
        let (mut people, mut keys) = (Vec::new(), BTreeSet::new());
        saved.each_record::<IdentitySlot>(&mut |key, slot| {
            match slot {
                IdentitySlot::Canonical(_) if erased.contains(key) => people.push(key),
                IdentitySlot::Alias { user, .. } if erased.contains(user) || erased.contains(key) => {}
                IdentitySlot::Canonical(_) | IdentitySlot::Alias { .. } => return Ok(()),
            }
            keys.insert(key);
            Ok(())
        })?;
        people.sort_unstable_by_key(|key| std::cmp::Reverse(*key));
        Ok((!keys.is_empty()).then_some(Self { people, keys, void: None }))
    }

    /// Takes a step. The changes of the step before must be saved. Returns whether more steps
    /// follow.
    ///
    /// # Errors
    /// A record could not be read. The state is then inconsistent.
    pub fn step<S: SavedRecords>(&mut self, project: &mut Project, hasher: &KeyHasher, saved: &S) -> Result<bool, Fault> {
        let mut fold = Fold { project, position: 0, hasher, source: saved };
        let more = match (self.people.pop(), &self.void) {
            (Some(person), _) => fold.forget_person(person).map(|()| true)?,
            (None, None) => {
                fold.forget_links(&self.keys)?;
                self.void = Some(fold.forget_members(&self.keys)?);
                true
            }
            (None, Some(void)) => fold.forget_texts(void).map(|()| false)?,
        };
        // Versions need not change: the number of erasures, which is part of every tag, does.
        project.rollups.drain(&mut Touched::default());
        project.touched.clear();
        Ok(more)
    }
}

impl<S: Source> Fold<'_, S> {
    /// Takes an identity out of all sums, and removes it.
    fn forget_person(&mut self, key: RecordKey) -> Result<(), Fault> {
        let Some(mut identity) = self.take_identity(key)? else { return Ok(()) };
        self.load_all(&mut identity)?;
        self.contribute(&identity, Sign::Minus)?;
        let Project { people, orphans, .. } = &mut *self.project;
        let page = |serial| (IdentitySlot::PAGE_SPACE, page_key(identity.history_key, serial));
        orphans.extend(identity.facts.serials().map(page));
        orphans.push((IdentitySlot::SPACE, key));
        people.remove(key);
        Ok(())
    }
}

impl<S: SavedRecords> Fold<'_, S> {
    /// Removes the references to the identities with `keys`: links, and entries among the owners of
    /// e-mail addresses.
    fn forget_links(&mut self, keys: &BTreeSet<RecordKey>) -> Result<(), Fault> {
        let source = self.source;
        let Project { people, emails, rollups, orphans, limits, .. } = &mut *self.project;
        for key in keys {
            people.remove(*key);
            orphans.push((IdentitySlot::SPACE, *key));
            rollups.member_aliases.remove(*key);
        }
        source.each_record::<EmailOwners>(&mut |email, mut owners| {
            let page = |serial| source.page::<EmailOwners>(page_key(email, serial));
            let gone = owners.among(keys, page)?;
            if gone.is_empty() {
                return Ok(());
            }
            let Some(owners) = emails.get_mut(email, || source.record(email))? else { return Ok(()) };
            let mut pages = owners.remove(&gone, limits, page)?;
            if owners.is_empty() {
                pages.extend(owners.serials());
                emails.remove(email);
                orphans.push((EmailOwners::SPACE, email));
            }
            orphans.extend(pages.into_iter().map(|serial| (EmailOwners::PAGE_SPACE, page_key(email, serial))));
            Ok(())
        })
    }

    /// Removes every trace of `keys` from lists of members, including groups that a link moved
    /// somebody out of. Returns the companies and groups of which only the key is left.
    fn forget_members(&mut self, keys: &BTreeSet<RecordKey>) -> Result<BTreeSet<RecordKey>, Fault> {
        let (source, former, mut void) = (self.source, FormerMembers::new(keys), BTreeSet::new());
        let Project { groups, orphans, .. } = &mut *self.project;
        source.each_record::<Group>(&mut |key, mut group| {
            if group.is_void() {
                void.insert(key);
            }
            if group.forget_members(&former).is_none() {
                return Ok(());
            }
            let Some(group) = groups.get_mut(key, || source.record(key))? else { return Ok(()) };
            let pages = group.forget_members(&former).into_iter().flatten();
            orphans.extend(pages.map(|serial| (Group::PAGE_SPACE, page_key(key, serial))));
            Ok(())
        })?;
        Ok(void)
    }
}
