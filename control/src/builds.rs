//! Operations on the runs that build company profiles.

use headcount_domain::{Instant, OrganizationId};

use super::build_run::MAX_BUILD_STARTS;
use super::record::{ActionsPayment, ControlRecord};
use super::{
    ActionEntry, ActionReason, Author, BuildError, BuildOutcome, BuildRun, BuildRunId, Change, CompanyProfileId, MAX_BUILD_RUNS,
    NewBuild, Organization, Registry, RegistryError, Result,
};

const NOT_FOUND: RegistryError = RegistryError::NotFound { what: "build run" };

impl Registry {
    /// Begins a run and takes its price in one step. If a run for this profile is in progress,
    /// returns that one, and takes nothing.
    ///
    /// # Errors
    /// Returns [`RegistryError::Exhausted`] `actions_exhausted`; [`RegistryError::Conflict`]
    /// `limit_reached`, and `website_mismatch` if a run for this profile reads another website;
    /// [`RegistryError::NotFound`] if the organization doesn't exist; [`RegistryError::Storage`].
    pub fn start_build(&self, new: NewBuild, author: &Author) -> Result<BuildRun> {
        let NewBuild { organization, website, profile, price } = new;
        self.change(Some(author), |change| {
            {
                let tenant = self.tenant(organization)?;
                let runs = &tenant.builds;
                if let Some(run) = runs.values().find(|run| run.outcome.is_none() && run.profile == profile) {
                    if run.website.place() == website.place() {
                        return Ok(run.clone());
                    }
                    let message = format!("the profile is being built from {}", run.website);
                    return Err(RegistryError::conflict("website_mismatch", message));
                }
                if runs.values().filter(|run| run.is_kept(author.at)).count() >= MAX_BUILD_RUNS {
                    let message = format!("there are {MAX_BUILD_RUNS} builds of the last 30 days; there can be no more");
                    return Err(RegistryError::conflict("limit_reached", message));
                }
            }
            let run = BuildRun {
                id: BuildRunId::random()?,
                organization,
                website: website.clone(),
                profile: profile.clone(),
                at: author.at,
                actor: author.actor.clone(),
                request_id: author.request_id.clone(),
                price,
                starts: 0,
                outcome: None,
            };
            let payment = change.payment(&run, ActionReason::Build, author)?;
            change.commit(ControlRecord::BuildRunChanged { run: run.clone(), payment }, author)?;
            Ok(run)
        })
    }

    /// Records that the website of a run is about to be read. If the run was started too often
    /// without an end, it fails instead.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`], [`RegistryError::Storage`].
    pub fn note_build_start(&self, organization: OrganizationId, id: &BuildRunId, at: Instant) -> Result<BuildRun> {
        let started = self.change(None, |change| -> Result<_> {
            let run = self.build(organization, id)?;
            if run.outcome.is_some() || run.starts >= MAX_BUILD_STARTS {
                return Ok(None);
            }
            let author = run.author(at);
            let run = BuildRun { starts: run.starts + 1, ..run };
            change.commit(ControlRecord::BuildRunChanged { run: run.clone(), payment: None }, &author)?;
            Ok(Some(run))
        })?;
        let message = format!("the server stopped {MAX_BUILD_STARTS} times while it read the website");
        let failure = BuildError { code: "given_up".to_owned(), message, url: None };
        started.map_or_else(|| self.end_build(organization, id, Err(failure), at), Ok)
    }

    /// Ends a run, and refunds its price if it failed. Does nothing if it has ended.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`], [`RegistryError::Storage`].
    pub fn end_build(
        &self,
        organization: OrganizationId,
        id: &BuildRunId,
        result: Result<CompanyProfileId, BuildError>,
        at: Instant,
    ) -> Result<BuildRun> {
        self.change(None, |change| {
            let run = self.build(organization, id)?;
            if run.outcome.is_some() {
                return Ok(run);
            }
            let author = run.author(at);
            let run = BuildRun { outcome: Some(BuildOutcome { at, result: result.clone() }), ..run };
            let is_failed = run.spent() < run.price;
            let payment = if is_failed { change.payment(&run, ActionReason::Refund, &author)? } else { None };
            change.commit(ControlRecord::BuildRunChanged { run: run.clone(), payment }, &author)?;
            Ok(run)
        })
    }

    /// Returns a run that is in progress, or ended recently before `now`.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`] if there is no such run, or another organization has it.
    pub fn kept_build(&self, organization: OrganizationId, id: &BuildRunId, now: Instant) -> Result<BuildRun> {
        let run = self.build(organization, id)?;
        if run.is_kept(now) { Ok(run) } else { Err(NOT_FOUND) }
    }

    /// Returns the run in progress with the lowest rank. Runs without a rank are left out.
    pub fn next_build<K: Ord>(&self, rank: impl Fn(&BuildRun) -> Option<K>) -> Option<BuildRun> {
        let state = self.state();
        let under_way = state.builds().filter(|run| run.outcome.is_none());
        let ranked = under_way.filter_map(|run| Some((rank(run)?, run)));
        ranked.min_by(|(a, _), (b, _)| a.cmp(b)).map(|(_, run)| run.clone())
    }

    fn build(&self, organization: OrganizationId, id: &BuildRunId) -> Result<BuildRun> {
        let tenant = self.tenant(organization)?;
        tenant.builds.get(id).cloned().ok_or(NOT_FOUND)
    }
}

impl Change<'_> {
    /// Returns the payment for a run, or its refund; `None` if the run is free.
    fn payment(&self, run: &BuildRun, reason: ActionReason, author: &Author) -> Result<Option<ActionsPayment>> {
        let current = self.registry.organization(run.organization)?;
        let (balance, price) = (current.actions_balance, run.price);
        let changed =
            if reason == ActionReason::Refund { Some(balance.saturating_add(price)) } else { balance.checked_sub(price) };
        let actions_balance = changed.ok_or_else(|| RegistryError::Exhausted {
            code: "actions_exhausted",
            message: format!("a build costs {price} Action, and the balance is {balance}"),
        })?;
        let Some(entry) = ActionEntry::of(balance, actions_balance, reason, author)? else { return Ok(None) };
        let entry = ActionEntry { run_id: Some(run.id.clone()), ..entry };
        Ok(Some(ActionsPayment { organization: Organization { actions_balance, ..Organization::clone(&current) }, entry }))
    }
}
