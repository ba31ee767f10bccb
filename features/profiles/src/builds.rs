//! Builds: fills a profile with facts from a website.
//!
//! A run is stored in a single record with its payment, before its website is read. It ends in a
//! single record, with its refund if it failed. The profile is written before that. An interrupted
//! run is repeated: it fills the fields that are still empty, and pays nothing again.

use headcount_common::ControlError;
use headcount_control::{
    Author, BuildError, BuildRun, CompanyProfileId, NewBuild, PlannedChange, RegistryError, Result, Website,
};
use headcount_domain::{Instant, OrganizationId};

use crate::profile::CompanyProfile;
use crate::research::SiteFindings;
use crate::store::{CompanyProfiles, plan};

/// The price of a build, in Actions. The first profile of an organization is free.
const PRICE: u64 = 1;

/// A request for a build.
#[derive(Debug, Clone)]
pub struct BuildRequest {
    /// The website: a URL, or a host.
    pub website: String,
    /// The profile to fill. Default: the profile with this website, or else the organization's own.
    pub profile: Option<CompanyProfileId>,
}

/// A run, and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileBuild {
    /// The run.
    pub run: BuildRun,
    /// Whether its website is being read.
    pub is_running: bool,
    /// The current profile, if the run succeeded and the profile still exists.
    pub profile: Option<CompanyProfile>,
}

fn failed(code: &str, message: impl Into<String>) -> BuildError {
    BuildError { code: code.to_owned(), message: message.into(), url: None }
}

fn other_website(of_profile: &Website) -> (&'static str, String) {
    ("website_mismatch", format!("the profile has the website {of_profile}"))
}

impl CompanyProfiles {
    /// Begins a run, or returns the run in progress for this profile.
    ///
    /// # Errors
    /// Returns [`RegistryError::Invalid`] `website`; [`RegistryError::NotFound`] if the profile
    /// doesn't exist; [`RegistryError::Conflict`] `website_mismatch`, `website_taken`,
    /// `limit_reached`; [`RegistryError::Exhausted`] `actions_exhausted`;
    /// [`RegistryError::Storage`].
    pub(crate) fn begin_build(&self, organization: OrganizationId, request: &BuildRequest, author: &Author) -> Result<BuildRun> {
        let website =
            Website::parse(&request.website).map_err(|why| RegistryError::invalid("website", format!("`website` {why}")))?;
        let _one = self.changes.lock();
        let profile = request.profile.clone().or_else(|| self.at_place_or_own(organization, &website.place()));
        match &profile {
            Some(id) => {
                let mut filled = self.get(organization, id)?;
                self.take_website(&mut filled, &website)?;
            }
            None => self.check_room(organization)?,
        }
        let price = if self.count(organization) == 0 { 0 } else { PRICE };
        self.registry.start_build(NewBuild { organization, website, profile, price }, author)
    }

    /// Ends a run: fills the profile, or records the error.
    ///
    /// # Errors
    /// [`RegistryError::Storage`]: the run is still in progress, and the call can be repeated.
    pub(crate) fn end_build(&self, run: &BuildRun, findings: &SiteFindings, now: Instant) -> Result<BuildRun> {
        let _one = self.changes.lock();
        let result = match &findings.failure {
            Some(failure) => Err(failure.clone()),
            None => match self.fill(run, findings, now) {
                Ok(profile) => Ok(profile),
                Err(RegistryError::NotFound { .. }) => Err(failed("profile_deleted", "the profile was deleted meanwhile")),
                Err(RegistryError::Conflict { code, message }) => Err(failed(code, message)),
                Err(RegistryError::Storage(error)) if is_damage(&error) => {
                    Err(failed("profile_damaged", "the file of the profile is damaged"))
                }
                Err(error) => return Err(error),
            },
        };
        self.registry.end_build(run.organization, &run.id, result, now)
    }

    fn fill(&self, run: &BuildRun, findings: &SiteFindings, now: Instant) -> Result<CompanyProfileId> {
        // Every attempt uses the same one.
        let own = CompanyProfileId::random()?;
        let filled = self.make(&run.author(now), || self.plan_to_fill(run, findings, (&own, now)))?;
        filled.map(|profile| profile.id).ok_or(RegistryError::NotFound { what: "company profile" })
    }

    fn plan_to_fill(
        &self,
        run: &BuildRun,
        findings: &SiteFindings,
        (own, now): (&CompanyProfileId, Instant),
    ) -> Result<Option<PlannedChange<CompanyProfile>>> {
        let organization = run.organization;
        // The own profile may have been created since, by a run whose end was not recorded.
        let id = run.profile.clone().or_else(|| self.at_place_or_own(organization, &run.website.place()));
        let current = id.map(|id| self.get(organization, &id)).transpose()?;
        let mut profile = match &current {
            Some(current) => current.clone(),
            None => CompanyProfile::own(own.clone(), organization, now, &run.website),
        };
        self.take_website(&mut profile, &run.website)?;
        profile.fill(findings.fields.clone());
        profile.sources.clone_from(&findings.sources);
        profile.updated_at = now;
        let planned = plan(current.as_ref(), Some(profile));
        Ok(planned.map(|planned| PlannedChange { action: planned.action.filter(|_| !planned.changes.is_empty()), ..planned }))
    }

    /// Gives a profile the website that it is built from, or checks that it already has it.
    fn take_website(&self, profile: &mut CompanyProfile, website: &Website) -> Result<()> {
        match &profile.website {
            Some(own) if own.place() == website.place() => Ok(()),
            Some(own) => {
                let (code, message) = other_website(own);
                Err(RegistryError::Conflict { code, message })
            }
            None => {
                profile.website = Some(website.clone());
                self.check_website(profile)
            }
        }
    }
}

fn is_damage(error: &ControlError) -> bool {
    matches!(error, ControlError::Io { source, .. } if source.kind() == std::io::ErrorKind::InvalidData)
}

#[cfg(test)]
mod tests {
    use headcount_storage::files::switch::{Plan, Switch};

    use super::*;
    use crate::profile::{NewCompanyProfile, ProfilePatch};
    use crate::research::ProfileFields;
    use crate::store::tests::PROFILES_DIR;
    use headcount_control::{ActionsQuery, OrganizationPatch, Registry};
    use std::sync::Arc;

    const NOW: Instant = Instant(1_700_000_000_000);

    fn open(dir: &std::path::Path) -> (Arc<Registry>, CompanyProfiles) {
        let registry = Arc::new(Registry::open(dir).unwrap());
        let profiles = crate::store::tests::open(&registry, &dir.join(PROFILES_DIR));
        (registry, profiles)
    }

    fn findings() -> SiteFindings {
        let fields = ProfileFields { name: Some("Acme".to_owned()), ..ProfileFields::default() };
        SiteFindings { fields, ..SiteFindings::default() }
    }

    /// If anything fails while a profile is filled, the run is still in progress. After a restart
    /// it ends, paid once, with its profile filled.
    #[test]
    fn every_operation_may_fail() {
        let mut failed = 0;
        for at in 1..60 {
            let dir = tempfile::tempdir().unwrap();
            let (registry, profiles) = open(dir.path());
            let organization = registry.initialize(NOW).unwrap().organization_id;
            let patch = OrganizationPatch { actions_balance: Some(5), ..OrganizationPatch::default() };
            registry.update_organization(organization, patch, NOW).unwrap();
            let patch = ProfilePatch { website: Some("a.example".to_owned()), ..ProfilePatch::default() };
            let id = profiles.create(organization, NewCompanyProfile(patch), NOW).unwrap().id;
            let request = BuildRequest { website: "a.example".to_owned(), profile: None };
            let run = profiles.begin_build(organization, &request, &NOW.into()).unwrap();

            let switch = Switch::arm(&dir.path().join(PROFILES_DIR), Plan { at, ..Plan::default() });
            let ended = profiles.end_build(&run, &findings(), NOW);
            let is_clean = switch.failed().is_empty();
            drop(switch);
            failed += u64::from(!is_clean);
            drop((registry, profiles));

            let (registry, profiles) = open(dir.path());
            let under_way = registry.next_build(|run| Some(run.at));
            assert!(ended.is_ok() != under_way.is_some(), "what was answered is durable");
            if let Some(run) = &under_way {
                profiles.end_build(run, &findings(), NOW).unwrap();
            }
            let ledger = registry.actions(organization, &ActionsQuery { limit: 10, starting_after: None }).unwrap();
            assert_eq!((ledger.balance, ledger.entries.len()), (4, 2));
            assert_eq!(profiles.get(organization, &id).unwrap().fields.name.as_deref(), Some("Acme"));
            let ended = registry.kept_build(organization, &run.id, NOW).unwrap().outcome.unwrap();
            assert_eq!(ended.result, Ok(id));
            if is_clean {
                break;
            }
        }
        assert!(failed >= 4, "{failed}");
    }
}
