//! All company profiles: documents, and an index of them in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use headcount_common::{ControlError, DocumentSet, Documents, follow_made};
use headcount_control::{
    AuditAction, Author, CompanyProfileId, PlannedChange, Registry, RegistryError, Result, TargetType, check_room,
};
use headcount_domain::{Instant, OrganizationId};
use parking_lot::{Mutex, RwLock};

use crate::profile::{CompanyProfile, NewCompanyProfile, ProfileKind, ProfilePatch};

/// The maximum number of company profiles of an organization.
pub const MAX_COMPANY_PROFILES: usize = 10_000;

const NOT_FOUND: RegistryError = RegistryError::NotFound { what: "company profile" };

/// The profiles to list.
#[derive(Debug, Clone, Default)]
pub struct ProfileQuery {
    /// The maximum number of profiles.
    pub limit: usize,
    /// Only profiles that are older than this one.
    pub starting_after: Option<CompanyProfileId>,
}

/// A part of the list of company profiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfilePage {
    /// The profiles, newest first.
    pub profiles: Vec<CompanyProfile>,
    /// Whether older profiles follow.
    pub truncated: bool,
}

/// The index entry of a profile.
#[derive(Debug)]
struct Indexed {
    created_at: Instant,
    kind: ProfileKind,
    /// The place of its website: [`Website::place`](headcount_control::Website::place).
    place: Option<Box<str>>,
}

/// Plans to create a profile, to change it, or to remove it.
pub(crate) fn plan(before: Option<&CompanyProfile>, after: Option<CompanyProfile>) -> Option<PlannedChange<CompanyProfile>> {
    let CompanyProfile { id, organization, .. } = before.or(after.as_ref())?;
    let (id, organization) = (id.clone(), *organization);
    let action = match (before, &after) {
        (None, _) => AuditAction::CompanyProfileCreated,
        (Some(_), Some(_)) => AuditAction::CompanyProfileUpdated,
        (Some(_), None) => AuditAction::CompanyProfileDeleted,
    };
    let changes = CompanyProfile::differences(before, after.as_ref());
    Some(PlannedChange { id, organization, item: after, action: Some(action), changes })
}

type Index = BTreeMap<OrganizationId, BTreeMap<CompanyProfileId, Indexed>>;

/// All company profiles.
#[derive(Debug)]
pub struct CompanyProfiles {
    pub(crate) registry: Arc<Registry>,
    pub(crate) items: DocumentSet<CompanyProfile>,
    /// The index. The profiles themselves are read on demand.
    index: RwLock<Index>,
    /// Locked while a profile changes, and while a build begins or ends.
    pub(crate) changes: Mutex<()>,
}

impl CompanyProfiles {
    /// Uses the documents of profiles. No profile is known before [`Self::follow`].
    pub(crate) fn new(registry: Arc<Registry>, documents: Arc<dyn Documents>) -> Self {
        let items = DocumentSet::new(documents);
        Self { registry, items, index: RwLock::default(), changes: Mutex::default() }
    }

    /// Applies the changes of other nodes up to now. Returns the number of the last change.
    ///
    /// # Errors
    /// Returns a [`ControlError`]: changes applied before the failure stay.
    pub(crate) fn follow(&self) -> Result<u64, ControlError> {
        self.items.follow(|id, profile| {
            let mut index = self.index.write();
            match profile {
                Some(profile) => put(&mut index, &profile),
                None => index.values_mut().for_each(|profiles| drop(profiles.remove(id))),
            }
            Ok(())
        })
    }

    /// Makes the change that `plan` returns for the current profiles; `None` means no change. If
    /// another node's change comes first, `plan` is called again.
    pub(crate) fn make(
        &self,
        author: &Author,
        plan: impl Fn() -> Result<Option<PlannedChange<CompanyProfile>>>,
    ) -> Result<Option<CompanyProfile>> {
        let documents = (&self.items, TargetType::CompanyProfile);
        let put = |expected, id: &CompanyProfileId, profile: Option<&CompanyProfile>| self.put(expected, id, profile);
        self.registry.change_document(documents, author, || self.follow(), plan, put)
    }

    /// Creates a profile of a target account. The caller checks the capability.
    ///
    /// # Errors
    /// Returns [`RegistryError::Invalid`]; [`RegistryError::Conflict`] `limit_reached` at
    /// [`MAX_COMPANY_PROFILES`], `website_taken`; [`RegistryError::Storage`].
    pub fn create(&self, organization: OrganizationId, new: NewCompanyProfile, by: impl Into<Author>) -> Result<CompanyProfile> {
        let (_one, author) = (self.changes.lock(), by.into());
        let profile = CompanyProfile::account(CompanyProfileId::random()?, organization, author.at, new)?;
        self.make(&author, || {
            self.check_room(organization)?;
            self.check_website(&profile)?;
            Ok(plan(None, Some(profile.clone())))
        })?;
        Ok(profile)
    }

    /// Changes a profile: all fields of the patch, or none.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`]; [`RegistryError::Invalid`]; [`RegistryError::Conflict`]
    /// `website_taken`; [`RegistryError::Storage`].
    pub fn change(
        &self,
        organization: OrganizationId,
        id: &CompanyProfileId,
        patch: &ProfilePatch,
        by: impl Into<Author>,
    ) -> Result<CompanyProfile> {
        let (_one, author) = (self.changes.lock(), by.into());
        let changed = self.make(&author, || {
            let current = self.get(organization, id)?;
            let mut changed = current.clone();
            changed.change(patch.clone())?;
            if changed == current {
                return Ok(None);
            }
            self.check_website(&changed)?;
            changed.updated_at = author.at;
            Ok(plan(Some(&current), Some(changed)))
        })?;
        changed.map_or_else(|| self.get(organization, id), Ok)
    }

    /// Removes a profile.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`], [`RegistryError::Storage`].
    pub fn remove(&self, organization: OrganizationId, id: &CompanyProfileId, by: impl Into<Author>) -> Result<()> {
        let (_one, author) = (self.changes.lock(), by.into());
        self.make(&author, || Ok(plan(Some(&self.get(organization, id)?), None))).map(drop)
    }

    /// Returns a profile of an organization.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`], [`RegistryError::Storage`].
    pub fn get(&self, organization: OrganizationId, id: &CompanyProfileId) -> Result<CompanyProfile> {
        if !self.index.read().get(&organization).is_some_and(|profiles| profiles.contains_key(id)) {
            return Err(NOT_FOUND);
        }
        self.items.read(id)?.filter(|profile| profile.organization == organization).ok_or(NOT_FOUND)
    }

    /// Returns profiles of an organization, newest first.
    ///
    /// # Errors
    /// Returns [`RegistryError::Invalid`] `starting_after` if that profile doesn't exist;
    /// [`RegistryError::Storage`].
    pub fn page(&self, organization: OrganizationId, query: &ProfileQuery) -> Result<ProfilePage> {
        let (ids, truncated) = {
            let index = self.index.read();
            let all = index.get(&organization).into_iter().flatten();
            let mut all: Vec<_> = all.map(|(id, profile)| (profile.created_at, id)).collect();
            all.sort_unstable_by(|a, b| b.cmp(a));
            let begin = match &query.starting_after {
                None => 0,
                Some(after) => all.iter().position(|(_, id)| *id == after).ok_or_else(unknown_start)? + 1,
            };
            let rest = &all[begin..];
            let ids: Vec<_> = rest.iter().take(query.limit).map(|(_, id)| CompanyProfileId::clone(id)).collect();
            (ids, rest.len() > query.limit)
        };
        let mut profiles = Vec::with_capacity(ids.len());
        for id in ids {
            match self.get(organization, &id) {
                Ok(profile) => profiles.push(profile),
                // Removed meanwhile.
                Err(RegistryError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(ProfilePage { profiles, truncated })
    }

    /// The number of profiles of an organization.
    pub(crate) fn count(&self, organization: OrganizationId) -> usize {
        self.index.read().get(&organization).map_or(0, BTreeMap::len)
    }

    /// Returns the profile with a website at `place`, or else the organization's own.
    pub(crate) fn at_place_or_own(&self, organization: OrganizationId, place: &str) -> Option<CompanyProfileId> {
        let index = self.index.read();
        let profiles = index.get(&organization)?;
        let at_place = profiles.iter().find(|(_, profile)| profile.place.as_deref() == Some(place));
        let found = at_place.or_else(|| profiles.iter().find(|(_, profile)| profile.kind == ProfileKind::Own));
        found.map(|(id, _)| id.clone())
    }

    /// Checks that there is room for another profile.
    pub(crate) fn check_room(&self, organization: OrganizationId) -> Result<(), RegistryError> {
        check_room(self.count(organization), MAX_COMPANY_PROFILES, "company profiles")
    }

    /// Checks that no other profile of the organization has the website.
    pub(crate) fn check_website(&self, profile: &CompanyProfile) -> Result<()> {
        let Some(website) = &profile.website else { return Ok(()) };
        let place = website.place();
        let index = self.index.read();
        let mut others = index.get(&profile.organization).into_iter().flatten().filter(|(id, _)| **id != profile.id);
        match others.find(|(_, other)| other.place.as_deref() == Some(&*place)) {
            None => Ok(()),
            Some((id, _)) => {
                let message = format!("the company profile {id} has the website {website}");
                Err(RegistryError::Conflict { code: "website_taken", message })
            }
        }
    }

    /// Writes or removes a profile. Returns `false` if another change came first.
    fn put(&self, expected: u64, id: &CompanyProfileId, profile: Option<&CompanyProfile>) -> Result<bool> {
        if !self.items.put(expected, id, profile)? {
            return Ok(false);
        }
        self.items.propagate(follow_made(|| self.follow())?);
        Ok(true)
    }
}

fn put(index: &mut Index, profile: &CompanyProfile) {
    let place = profile.website.as_ref().map(|website| website.place().into_boxed_str());
    let indexed = Indexed { created_at: profile.created_at, kind: profile.kind, place };
    index.entry(profile.organization).or_default().insert(profile.id.clone(), indexed);
}

fn unknown_start() -> RegistryError {
    RegistryError::Invalid { param: "starting_after".to_owned(), message: "must be the id of a company profile".to_owned() }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;

    use headcount_common::local::LocalDocuments;
    use headcount_storage::files::switch::{Plan, Switch};

    use super::*;

    pub(crate) const PROFILES_DIR: &str = "control/profiles";

    const NOW: Instant = Instant(1_700_000_000_000);

    fn of(website: &str) -> NewCompanyProfile {
        NewCompanyProfile(ProfilePatch { website: Some(website.to_owned()), ..ProfilePatch::default() })
    }

    pub(crate) fn open(registry: &Arc<Registry>, dir: &Path) -> CompanyProfiles {
        let profiles = CompanyProfiles::new(Arc::clone(registry), Arc::new(LocalDocuments::open(dir).unwrap()));
        profiles.follow().unwrap();
        profiles
    }

    fn opened() -> (tempfile::TempDir, Arc<Registry>, OrganizationId, CompanyProfiles) {
        let dir = tempfile::tempdir().unwrap();
        let registry = Arc::new(Registry::open(dir.path()).unwrap());
        let organization = registry.initialize(NOW).unwrap().organization_id;
        let profiles = open(&registry, &dir.path().join(PROFILES_DIR));
        (dir, registry, organization, profiles)
    }

    /// After a failure a profile has its former or its new value, here and after a restart, and its
    /// website is taken accordingly.
    #[test]
    fn every_operation_may_fail() {
        let (dir, registry, organization, profiles) = opened();
        let path = dir.path().join(PROFILES_DIR);
        let id = profiles.create(organization, of("a.example"), NOW).unwrap().id;
        let mut failed = 0;
        for at in 1..50 {
            let next = format!("https://b{at}.example");
            let switch = Switch::arm(&path, Plan { at, ..Plan::default() });
            let patch = ProfilePatch { website: Some(next.clone()), ..ProfilePatch::default() };
            let changed = profiles.change(organization, &id, &patch, NOW);
            let is_clean = switch.failed().is_empty();
            drop(switch);
            let there = profiles.get(organization, &id).unwrap();
            let reopened = open(&registry, &path);
            assert_eq!(reopened.get(organization, &id).unwrap(), there);
            let website = there.website.as_ref().unwrap().to_string();
            assert!(changed.is_err() || website == next, "what was answered is durable");
            for profiles in [&profiles, &reopened] {
                let again = profiles.create(organization, of(&website), NOW).unwrap_err();
                assert!(matches!(again, RegistryError::Conflict { code: "website_taken", .. }), "{again}");
            }
            failed += u64::from(!is_clean);
            if is_clean {
                break;
            }
        }
        assert!(failed >= 4, "{failed}");
    }

    #[test]
    fn a_removal_that_fails_can_be_repeated() {
        let (dir, registry, organization, profiles) = opened();
        let path = dir.path().join(PROFILES_DIR);
        let mut failed = 0;
        for at in 1..20 {
            let id = profiles.create(organization, of(&format!("a{at}.example")), NOW).unwrap().id;
            let switch = Switch::arm(&path, Plan { at, ..Plan::default() });
            let removed = profiles.remove(organization, &id, NOW);
            let is_clean = switch.failed().is_empty();
            drop(switch);
            failed += u64::from(!is_clean);
            if removed.is_err() {
                let again = profiles.remove(organization, &id, NOW);
                assert!(matches!(again, Ok(()) | Err(RegistryError::NotFound { .. })), "{again:?}");
            }
            assert!(matches!(profiles.get(organization, &id), Err(RegistryError::NotFound { .. })));
            assert!(matches!(open(&registry, &path).get(organization, &id), Err(RegistryError::NotFound { .. })));
            if is_clean {
                break;
            }
        }
        assert!(failed >= 2, "{failed}");
    }

    #[test]
    fn a_damaged_file_is_set_aside_at_the_start_and_an_error_before() {
        let (dir, registry, organization, profiles) = opened();
        let path = dir.path().join(PROFILES_DIR);
        let [kept, damaged] =
            ["a.example", "b.example"].map(|website| profiles.create(organization, of(website), NOW).unwrap().id);
        let file = path.join(format!("{damaged}.json"));
        std::fs::write(&file, std::fs::read_to_string(&file).unwrap().replace("b.example", "c.example")).unwrap();
        let cut = path.join(format!("{kept}.json.tmp"));
        std::fs::write(&cut, "{").unwrap();
        assert!(matches!(profiles.get(organization, &damaged), Err(RegistryError::Storage(_))));
        let profiles = open(&registry, &path);
        let page = profiles.page(organization, &ProfileQuery { limit: 10, starting_after: None }).unwrap();
        assert_eq!(page.profiles.iter().map(|profile| &profile.id).collect::<Vec<_>>(), [&kept]);
        assert!(file.with_extension("json.damaged").exists() && !file.exists() && !cut.exists());
        assert_eq!(headcount_common::local::item_names(&path).unwrap(), [format!("{kept}.json")]);
    }
}
