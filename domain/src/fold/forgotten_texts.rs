//! Removes unused texts and groups after people were taken out of a state.
//!
//! Uses of a text are not counted, and a page URL may belong to one person. So the whole remaining
//! state is scanned. A frozen row can be the last use of a source. Then its orders or sessions are
//! counted under [`ERASED`] from there on.

use std::collections::{BTreeMap, BTreeSet};

use crate::cells::{Cells, Key, Value};
use crate::company::AccountSlot;
use crate::company::group::{CompanyById, Group};
use crate::contribution::{EntityKind, Sign};
use crate::facts::{DirtyRange, Touch};
use crate::fault::Fault;
use crate::fold::Fold;
use crate::identity::IdentitySlot;
use crate::ids::{COMPANY_TYPE, PublicCompany, RecordKey};
use crate::indexes::dictionary::{TermCounts, TermId, TermKind};
use crate::project::Project;
use crate::records::{Record, SavedRecords, page_key};
use crate::rollups::{Rollups, TouchSums, Under, Visits};
use crate::time::Day;

/// The name in frozen rows for a source, medium or campaign that only erased people had.
pub(super) const ERASED: &str = "(erased)";

/// The used terms of the dictionary: a bit for each number.
struct Uses(Vec<u64>);

impl Uses {
    fn new(TermCounts { pages, sources }: TermCounts) -> Self {
        Self(vec![0; (pages as usize + sources as usize).div_ceil(64)])
    }

    fn add(&mut self, TermId(number): TermId) {
        if let Some(bits) = self.0.get_mut(number as usize / 64) {
            *bits |= 1 << (number % 64);
        }
    }

    fn has(&self, TermId(number): TermId) -> bool {
        self.0.get(number as usize / 64).is_some_and(|bits| bits & (1 << (number % 64)) != 0)
    }

    fn has_all(&self, touch: Touch) -> bool {
        let mut has_all = true;
        touch.terms(&mut |term| has_all &= self.has(term));
        has_all
    }
}

impl<S: SavedRecords> Fold<'_, S> {
    /// Removes unused texts and groups. No identity has a `void` company, since the event that
    /// reported the company counts as its activity.
    pub(super) fn forget_texts(&mut self, void: &BTreeSet<RecordKey>) -> Result<(), Fault> {
        let mut uses = Uses::new(self.project.dictionary.counts);
        self.add_used(&mut uses)?;
        self.add_shown(&mut uses);
        if let Some(erased) = self.project.dictionary.find(ERASED, self.hasher, self.source)? {
            uses.add(erased);
        }
        self.rename_frozen(&uses)?;
        self.remove_unused(&uses)?;
        self.remove_void(void.iter().copied())
    }

    /// Adds the terms of identities and accounts.
    fn add_used(&self, uses: &mut Uses) -> Result<(), Fault> {
        self.source.each_record::<IdentitySlot>(&mut |_, slot| {
            if let IdentitySlot::Canonical(identity) = slot {
                identity.facts.recent_terms(&mut |term| uses.add(term));
            }
            Ok(())
        })?;
        self.source.each_record::<AccountSlot>(&mut |_, slot| {
            if let AccountSlot::Canonical(account) = slot {
                account.facts.recent_terms(&mut |term| uses.add(term));
            }
            Ok(())
        })?;
        self.source.each_page::<IdentitySlot>(&mut |page| {
            page.terms(&mut |term| uses.add(term));
            Ok(())
        })?;
        self.source.each_page::<AccountSlot>(&mut |page| {
            page.terms(&mut |term| uses.add(term));
            Ok(())
        })
    }

    /// Adds the terms of rows that are not frozen. Facts have the same terms, so this adds nothing
    /// unless a row is wrong.
    fn add_shown(&self, uses: &mut Uses) {
        let Rollups { traffic, deferred_by_identity, deferred_by_account, .. } = &self.project.rollups;
        let first = self.project.floor.map_or(i32::MIN, |floor| floor.0);
        let orders = orders(&self.project.rollups).into_iter().flat_map(|cells| cells.between(first, i32::MAX));
        let orders = orders.filter_map(|((_, under), _)| touch_of(under));
        let visits = traffic.between(first, i32::MAX).filter_map(|((.., touch), _)| touch);
        let deferred = deferred_by_identity.iter().chain(deferred_by_account.iter()).filter_map(|(_, touch)| touch);
        orders.chain(visits).chain(deferred).for_each(|touch| touch.terms(&mut |term| uses.add(term)));
    }

    /// Replaces unused texts in frozen rows.
    fn rename_frozen(&mut self, uses: &Uses) -> Result<(), Fault> {
        let Some(last) = self.project.floor.and_then(|floor| floor.0.checked_sub(1)).map(Day) else { return Ok(()) };
        if !shows_unused(&self.project.rollups, last, uses) {
            return Ok(());
        }
        let erased = self.project.dictionary.intern(ERASED, TermKind::Source, self.hasher, self.source)?;
        let renamed = |touch: Touch| touch.with_terms(|term| if uses.has(term) { term } else { erased });
        let Project { rollups, floor, .. } = &mut *self.project;
        rollups.set_floor(None);
        let Rollups { first_touch_by_identity, last_touch_by_identity, first_touch_by_account, last_touch_by_account, .. } =
            rollups;
        for cells in [first_touch_by_identity, last_touch_by_identity, first_touch_by_account, last_touch_by_account] {
            let rename = |(day, under)| touch_of(under).map(|touch| (day, Under::Touch(Some(renamed(touch)))));
            move_rows(cells, last, rename, |sum, row: TouchSums| sum.add(row, Sign::Plus));
        }
        let rename = |(day, channel, touch): (i32, _, Option<Touch>)| touch.map(|touch| (day, channel, Some(renamed(touch))));
        move_rows(&mut rollups.traffic, last, rename, |sum: &mut Visits, row| *sum = sum.plus(row));
        rollups.set_floor(*floor);
        Ok(())
    }

    /// Removes unused terms.
    fn remove_unused(&mut self, uses: &Uses) -> Result<(), Fault> {
        let Project { dictionary, orphans, .. } = &mut *self.project;
        self.source.each_record::<TermId>(&mut |key, id| {
            if !uses.has(id) {
                orphans.extend(dictionary.remove(key, id));
            }
            Ok(())
        })
    }

    /// Removes empty groups.
    fn remove_void(&mut self, groups: impl Iterator<Item = RecordKey>) -> Result<(), Fault> {
        let source = self.source;
        let mut removed: BTreeMap<RecordKey, BTreeSet<u32>> = BTreeMap::new();
        for key in groups {
            let group = self.project.groups.get(key, || source.record(key))?;
            let Some(group) = group.filter(|group| group.is_void()).cloned() else { continue };
            if *group.kind == *COMPANY_TYPE && !self.remove_company(key, &group.key)? {
                continue;
            }
            let Project { groups, orphans, rollups, .. } = &mut *self.project;
            groups.remove(key);
            orphans.extend(group.serials().map(|serial| (Group::PAGE_SPACE, page_key(key, serial))));
            orphans.push((Group::SPACE, key));
            let kind = self.hasher.group_type(&group.kind);
            // The number stays assigned, since the numbers of later groups must not change.
            rollups.group_numbers.retire((kind, group.number));
            rollups.group_names.set_name(kind, group.number, "");
            removed.entry(kind).or_default().insert(group.number);
        }
        if !removed.is_empty() {
            self.project.kept_sums.clear();
        }
        removed.iter().for_each(|(kind, numbers)| self.project.rollups.group_activity.remove_groups(*kind, numbers));
        Ok(())
    }

    /// Removes the account of a company if it is empty. Returns whether it did.
    fn remove_company(&mut self, key: RecordKey, name: &str) -> Result<bool, Fault> {
        let source = self.source;
        let Project { accounts, rollups, company_ids, orphans, .. } = &mut *self.project;
        let slot = accounts.get_to_load(key, || source.record(key))?;
        let Some(AccountSlot::Canonical(account)) = slot else { return Ok(false) };
        if !account.facts.is_empty() {
            return Ok(false);
        }
        // Empty pages, too.
        account.facts.load_all(|serial| source.page::<AccountSlot>(page_key(key, serial)))?;
        // Its deferred orders still use a name.
        rollups.contribute(EntityKind::Account, &account.facts, Sign::Minus, &DirtyRange::ANY);
        orphans.extend(account.facts.serials().map(|serial| (AccountSlot::PAGE_SPACE, page_key(key, serial))));
        orphans.push((AccountSlot::SPACE, key));
        accounts.remove(key);
        let public = self.hasher.public_company(PublicCompany::of(name));
        company_ids.remove(public);
        orphans.push((CompanyById::SPACE, public));
        Ok(true)
    }
}

type OrdersByTouch = Cells<crate::rollups::DayAndUnder, TouchSums>;

/// The tables of orders by touch.
fn orders(rollups: &Rollups) -> [&OrdersByTouch; 4] {
    let Rollups { first_touch_by_identity, last_touch_by_identity, first_touch_by_account, last_touch_by_account, .. } = rollups;
    [first_touch_by_identity, last_touch_by_identity, first_touch_by_account, last_touch_by_account]
}

/// The touch of orders; `None` if it is deferred or missing.
fn touch_of(under: Under) -> Option<Touch> {
    match under {
        Under::Touch(touch) => touch,
        Under::Deferred(_) => None,
    }
}

/// Whether a row up to the day `last` has an unused term.
fn shows_unused(rollups: &Rollups, last: Day, uses: &Uses) -> bool {
    let is_unused = |touch: Option<Touch>| touch.is_some_and(|touch| !uses.has_all(touch));
    let mut frozen = orders(rollups).into_iter().flat_map(|cells| cells.between(i32::MIN, last.0));
    frozen.any(|((_, under), _)| is_unused(touch_of(under)))
        || rollups.traffic.between(i32::MIN, last.0).any(|((.., touch), _)| is_unused(touch))
}

/// Moves the rows up to the day `last` to the keys that `rename` returns, and adds them to existing
/// rows.
fn move_rows<K: Key, V: Value + Default + PartialEq>(
    cells: &mut Cells<K, V>,
    last: Day,
    rename: impl Fn(K) -> Option<K>,
    add: impl Fn(&mut V, V),
) {
    let renamed = |(key, row): (K, V)| rename(key).filter(|new| *new != key).map(|new| (key, new, row));
    let moved: Vec<(K, K, V)> = cells.between(i32::MIN, last.0).filter_map(renamed).collect();
    for (key, new, row) in moved {
        cells.remove(key);
        cells.change(new, |sum| add(sum, row));
    }
}
