//! All company profiles: the files, and the index of them in memory.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use headcount_common::{ControlError, DocumentSet, Documents, follow_made};
use headcount_control::{AuditAction, Author, CompanyProfileId, FieldChange, Registry, RegistryError};
use headcount_domain::ids::OrganizationId;
use headcount_domain::time::Instant;
use headcount_storage::files;
use parking_lot::{Mutex, RwLock};

use super::build_queue::BuildQueue;
use super::files::{PROFILES_DIR, ProfileFiles};
use super::profile::{CompanyProfile, NewCompanyProfile, ProfileKind, ProfilePatch};

/// The most company profiles of an organization.
pub const MAX_COMPANY_PROFILES: usize = 10_000;

const NOT_FOUND: RegistryError = RegistryError::NotFound { what: "company profile" };

/// The profiles to list.
#[derive(Debug, Clone, Default)]
pub struct ProfileQuery {
    /// The most profiles.
    pub limit: usize,
    /// Only profiles that are older than this one.
    pub starting_after: Option<CompanyProfileId>,
}

/// A part of the list of company profiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfilePage {
    /// The profiles, newest first.
    pub profiles: Vec<CompanyProfile>,
    /// Whether older ones follow.
    pub truncated: bool,
}

/// What finds a profile.
#[derive(Debug)]
struct Indexed {
    created_at: Instant,
    kind: ProfileKind,
    /// Of its website: [`Website::place`](headcount_control::Website::place).
    place: Option<Box<str>>,
}

/// A change of a profile.
pub(super) struct Planned {
    pub(super) id: CompanyProfileId,
    pub(super) organization: OrganizationId,
    /// What it is from then on; `None`: it is removed.
    pub(super) profile: Option<CompanyProfile>,
    /// What the audit log says of it; `None`: nothing.
    pub(super) action: Option<AuditAction>,
    pub(super) changes: BTreeMap<String, FieldChange>,
}

impl Planned {
    /// A profile that is made, or changed from what it is.
    pub(super) fn of(current: Option<&CompanyProfile>, profile: CompanyProfile) -> Self {
        let changes = CompanyProfile::differences(current, Some(&profile));
        let action = if current.is_some() { AuditAction::CompanyProfileUpdated } else { AuditAction::CompanyProfileCreated };
        let (id, organization) = (profile.id.clone(), profile.organization);
        Self { id, organization, profile: Some(profile), action: Some(action), changes }
    }
}

type Index = BTreeMap<OrganizationId, BTreeMap<CompanyProfileId, Indexed>>;

/// See the module.
#[derive(Debug)]
pub(crate) struct CompanyProfiles {
    files: ProfileFiles,
    /// What all members have, of which the files are a copy; `None`: the files are all there is.
    shared: Option<DocumentSet<CompanyProfile>>,
    index: RwLock<Index>,
    /// Held while a profile changes, and while a build begins or ends.
    pub(super) changes: Mutex<()>,
    /// The builds that are running.
    pub(crate) builds: Arc<BuildQueue>,
}

impl CompanyProfiles {
    /// Reads the profiles in `dir`.
    ///
    /// # Errors
    /// A file can't be read.
    pub(crate) fn open(dir: &Path) -> io::Result<Self> {
        let mut index = Index::new();
        let files = ProfileFiles::open(dir, |_, profile| put(&mut index, &profile))?;
        Ok(Self { files, shared: None, index: RwLock::new(index), changes: Mutex::default(), builds: Arc::default() })
    }

    /// Reads what all members have, once it [follows](Self::follow) them. What is in `dir` is a copy, and is made anew.
    ///
    /// # Errors
    /// The directory can't be emptied.
    pub(crate) fn open_shared(dir: &Path, documents: Arc<dyn Documents>) -> io::Result<Self> {
        if dir.try_exists()? {
            files::remove_dir_all(dir)?;
        }
        Ok(Self { shared: Some(DocumentSet::new(documents)), ..Self::open(dir)? })
    }

    /// Waits with `propagate` after each change, until all others have applied that with this number.
    pub(crate) fn propagate_with(&self, propagate: impl Fn(u64) + Send + Sync + 'static) {
        if let Some(shared) = &self.shared {
            shared.propagate_with(propagate);
        }
    }

    /// Applies what others have changed up to now. Returns the number of the last change; 0 if there are no others.
    ///
    /// # Errors
    /// [`ControlError`]: what was applied before stays.
    pub(crate) fn follow(&self) -> Result<u64, ControlError> {
        let Some(shared) = &self.shared else { return Ok(0) };
        shared.follow(|id, profile| match profile {
            Some(profile) => self.write(profile).map(drop),
            None => self.forget(id),
        })
    }

    /// Makes a change that `plan` returns for the profiles as they are; `None`: nothing is to be changed. If another member's change comes first, `plan` is asked again.
    pub(super) fn make(
        &self,
        registry: &Registry,
        author: &Author,
        plan: impl Fn() -> Result<Option<Planned>, RegistryError>,
    ) -> Result<Option<CompanyProfile>, RegistryError> {
        let (mut noted, mut last) = (None, None);
        loop {
            let expected = self.follow()?;
            if last.replace(expected) == Some(expected) {
                let message = "a change of a company profile is refused, and no other is there";
                return Err(ControlError::Documents(message.to_owned()).into());
            }
            let Some(Planned { id, organization, profile, action, changes }) = plan()? else {
                // Another member may have made the change just now, and wait for the others.
                if let Some(shared) = &self.shared {
                    shared.propagate(expected);
                }
                return Ok(None);
            };
            if let Some(action) = action.filter(|_| noted.as_ref() != Some(&changes)) {
                registry.note_profile_change(organization, &id, action, changes.clone(), author)?;
                noted = Some(changes);
            }
            if self.put(expected, &id, profile.as_ref())? {
                return Ok(profile);
            }
        }
    }

    /// Makes a profile of a target account.
    ///
    /// # Errors
    /// [`RegistryError::Invalid`]; [`RegistryError::Conflict`] `limit_reached`, `website_taken`; [`RegistryError::Storage`].
    pub(crate) fn create(
        &self,
        registry: &Registry,
        organization: OrganizationId,
        new: NewCompanyProfile,
        author: &Author,
    ) -> Result<CompanyProfile, RegistryError> {
        let _one = self.changes.lock();
        let profile = CompanyProfile::account(CompanyProfileId::random()?, organization, author.at, new)?;
        self.make(registry, author, || {
            self.check_room(organization)?;
            self.check_website(&profile)?;
            Ok(Some(Planned::of(None, profile.clone())))
        })?;
        Ok(profile)
    }

    /// Changes a profile: all fields of the patch, or none.
    ///
    /// # Errors
    /// [`RegistryError::NotFound`]; [`RegistryError::Invalid`]; [`RegistryError::Conflict`] `website_taken`; [`RegistryError::Storage`].
    pub(crate) fn change(
        &self,
        registry: &Registry,
        organization: OrganizationId,
        id: &CompanyProfileId,
        patch: &ProfilePatch,
        author: &Author,
    ) -> Result<CompanyProfile, RegistryError> {
        let _one = self.changes.lock();
        let changed = self.make(registry, author, || {
            let current = self.get(organization, id)?;
            let mut changed = current.clone();
            changed.change(patch.clone())?;
            if changed == current {
                return Ok(None);
            }
            self.check_website(&changed)?;
            changed.updated_at = author.at;
            Ok(Some(Planned::of(Some(&current), changed)))
        })?;
        changed.map_or_else(|| self.get(organization, id), Ok)
    }

    /// Removes a profile.
    ///
    /// # Errors
    /// [`RegistryError::NotFound`], [`RegistryError::Storage`].
    pub(crate) fn remove(
        &self,
        registry: &Registry,
        organization: OrganizationId,
        id: &CompanyProfileId,
        author: &Author,
    ) -> Result<(), RegistryError> {
        let _one = self.changes.lock();
        let plan = || {
            let changes = CompanyProfile::differences(Some(&self.get(organization, id)?), None);
            let (id, action) = (id.clone(), Some(AuditAction::CompanyProfileDeleted));
            Ok(Some(Planned { id, organization, profile: None, action, changes }))
        };
        self.make(registry, author, plan).map(drop)
    }

    /// A profile of an organization.
    ///
    /// # Errors
    /// [`RegistryError::NotFound`], [`RegistryError::Storage`].
    pub(crate) fn get(&self, organization: OrganizationId, id: &CompanyProfileId) -> Result<CompanyProfile, RegistryError> {
        if !self.index.read().get(&organization).is_some_and(|profiles| profiles.contains_key(id)) {
            return Err(NOT_FOUND);
        }
        let read = self.files.read(id).map_err(|error| failed("read", error))?;
        read.filter(|profile| profile.organization == organization).ok_or(NOT_FOUND)
    }

    /// Returns profiles of an organization, newest first.
    ///
    /// # Errors
    /// [`RegistryError::Invalid`] `starting_after` for a profile that is not there; [`RegistryError::Storage`].
    pub(crate) fn page(&self, organization: OrganizationId, query: &ProfileQuery) -> Result<ProfilePage, RegistryError> {
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
    pub(super) fn count(&self, organization: OrganizationId) -> usize {
        self.index.read().get(&organization).map_or(0, BTreeMap::len)
    }

    /// The profile with a website at `place`, else the organization's own.
    pub(super) fn at_place_or_own(&self, organization: OrganizationId, place: &str) -> Option<CompanyProfileId> {
        let index = self.index.read();
        let profiles = index.get(&organization)?;
        let at_place = profiles.iter().find(|(_, profile)| profile.place.as_deref() == Some(place));
        let found = at_place.or_else(|| profiles.iter().find(|(_, profile)| profile.kind == ProfileKind::Own));
        found.map(|(id, _)| id.clone())
    }

    /// Checks that there can be one more profile.
    pub(super) fn check_room(&self, organization: OrganizationId) -> Result<(), RegistryError> {
        if self.count(organization) < MAX_COMPANY_PROFILES {
            return Ok(());
        }
        let message = format!("there are {MAX_COMPANY_PROFILES} company profiles; there can be no more");
        Err(RegistryError::Conflict { code: "limit_reached", message })
    }

    /// Checks that no other profile of the organization has the website.
    pub(super) fn check_website(&self, profile: &CompanyProfile) -> Result<(), RegistryError> {
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

    /// Writes or removes a profile, here or where all members see it. Returns `false` if another member's change came first.
    fn put(&self, expected: u64, id: &CompanyProfileId, profile: Option<&CompanyProfile>) -> Result<bool, RegistryError> {
        let Some(shared) = &self.shared else {
            match profile {
                Some(profile) => self.write(profile.clone())?,
                None => self.forget(id)?,
            }
            return Ok(true);
        };
        if !shared.put(expected, id, profile)? {
            return Ok(false);
        }
        shared.propagate(follow_made(|| self.follow())?);
        Ok(true)
    }

    fn write(&self, profile: CompanyProfile) -> Result<(), ControlError> {
        let written = self.files.write(&profile.id, &profile).map_err(|error| failed("write", error));
        if written.is_err() {
            // The former or the new file is there: the index follows the file.
            if let Ok(Some(there)) = self.files.read(&profile.id) {
                put(&mut self.index.write(), &there);
            }
        }
        written?;
        put(&mut self.index.write(), &profile);
        Ok(())
    }

    fn forget(&self, id: &CompanyProfileId) -> Result<(), ControlError> {
        self.files.remove(id).map_err(|error| failed("remove", error))?;
        self.index.write().values_mut().for_each(|profiles| drop(profiles.remove(id)));
        Ok(())
    }
}

fn put(index: &mut Index, profile: &CompanyProfile) {
    let place = profile.website.as_ref().map(|website| website.place().into_boxed_str());
    let indexed = Indexed { created_at: profile.created_at, kind: profile.kind, place };
    index.entry(profile.organization).or_default().insert(profile.id.clone(), indexed);
}

fn failed(doing: &'static str, source: io::Error) -> ControlError {
    ControlError::Io { doing, path: PROFILES_DIR.into(), source }
}

fn unknown_start() -> RegistryError {
    RegistryError::Invalid { param: "starting_after".to_owned(), message: "must be the id of a company profile".to_owned() }
}

#[cfg(test)]
mod tests {
    use headcount_storage::files::switch::{Plan, Switch};

    use super::*;

    const NOW: Instant = Instant(1_700_000_000_000);

    fn author() -> Author {
        NOW.into()
    }

    fn of(website: &str) -> NewCompanyProfile {
        NewCompanyProfile(ProfilePatch { website: Some(website.to_owned()), ..ProfilePatch::default() })
    }

    fn opened() -> (tempfile::TempDir, Registry, OrganizationId, CompanyProfiles) {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::open(dir.path()).unwrap();
        let organization = registry.initialize(NOW).unwrap().organization_id;
        let profiles = CompanyProfiles::open(&dir.path().join(PROFILES_DIR)).unwrap();
        (dir, registry, organization, profiles)
    }

    /// After a failure a profile is, here and after a restart, as it was or as it was to become, and its website is taken accordingly.
    #[test]
    fn every_operation_may_fail() {
        let (dir, registry, organization, profiles) = opened();
        let path = dir.path().join(PROFILES_DIR);
        let id = profiles.create(&registry, organization, of("a.example"), &author()).unwrap().id;
        let mut failed = 0;
        for at in 1..50 {
            let next = format!("https://b{at}.example");
            let switch = Switch::arm(&path, Plan { at, ..Plan::default() });
            let patch = ProfilePatch { website: Some(next.clone()), ..ProfilePatch::default() };
            let changed = profiles.change(&registry, organization, &id, &patch, &author());
            let is_clean = switch.failed().is_empty();
            drop(switch);
            let there = profiles.get(organization, &id).unwrap();
            let reopened = CompanyProfiles::open(&path).unwrap();
            assert_eq!(reopened.get(organization, &id).unwrap(), there);
            let website = there.website.as_ref().unwrap().to_string();
            assert!(changed.is_err() || website == next, "what was answered is durable");
            for profiles in [&profiles, &reopened] {
                let again = profiles.create(&registry, organization, of(&website), &author()).unwrap_err();
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
            let id = profiles.create(&registry, organization, of(&format!("a{at}.example")), &author()).unwrap().id;
            let switch = Switch::arm(&path, Plan { at, ..Plan::default() });
            let removed = profiles.remove(&registry, organization, &id, &author());
            let is_clean = switch.failed().is_empty();
            drop(switch);
            failed += u64::from(!is_clean);
            if removed.is_err() {
                let again = profiles.remove(&registry, organization, &id, &author());
                assert!(matches!(again, Ok(()) | Err(RegistryError::NotFound { .. })), "{again:?}");
            }
            assert!(matches!(profiles.get(organization, &id), Err(RegistryError::NotFound { .. })));
            assert!(matches!(CompanyProfiles::open(&path).unwrap().get(organization, &id), Err(RegistryError::NotFound { .. })));
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
        let [kept, damaged] = ["a.example", "b.example"]
            .map(|website| profiles.create(&registry, organization, of(website), &author()).unwrap().id);
        let file = path.join(format!("{damaged}.json"));
        std::fs::write(&file, std::fs::read_to_string(&file).unwrap().replace("b.example", "c.example")).unwrap();
        let cut = path.join(format!("{kept}.json.tmp"));
        std::fs::write(&cut, "{").unwrap();
        assert!(matches!(profiles.get(organization, &damaged), Err(RegistryError::Storage(_))));
        let profiles = CompanyProfiles::open(&path).unwrap();
        let page = profiles.page(organization, &ProfileQuery { limit: 10, starting_after: None }).unwrap();
        assert_eq!(page.profiles.iter().map(|profile| &profile.id).collect::<Vec<_>>(), [&kept]);
        assert!(file.with_extension("json.damaged").exists() && !file.exists() && !cut.exists());
        assert_eq!(ProfileFiles::names(&path).unwrap(), [format!("{kept}.json")]);
    }
}
