//! `/company-profiles`.

use std::collections::BTreeMap;

use headcount_api::endpoint::*;
use headcount_api::management::{self, on_feature};
use headcount_control::{BuildError, BuildRunId, Capability, CompanyProfileId, Website};
use headcount_domain::company::normalise_domain;
use headcount_domain::ids::PublicCompany;
use headcount_domain::{NamedValues, OrganizationId, Timezone};
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};

use crate::builder::Profiles;
use crate::builds::{BuildRequest, ProfileBuild};
use crate::profile::{CompanyProfile, NewCompanyProfile, ProfileKind, ProfilePatch};
use crate::research::ProfileSource;
use crate::store::ProfileQuery;

path_parameters! {
    BuildRunPath "run_id" "^run_[0-9A-Za-z]{16}$" "The run's id.";
    CompanyProfilePath "profile_id" "^cp_[0-9A-Za-z]{16}$" "The company profile's id.";
}

query_parameters! {
    /// The company profiles to list.
    pub(crate) struct CompanyProfileParameters {
        /// The most profiles to return.
        limit: ListLimit,
        /// Only profiles older than this one of the list: `cp_…`.
        starting_after: Option<Text<64>>,
    }
}

fn kinds() -> Object {
    let names = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(ProfileKind::names()));
    names.description(Some("`self`: the organization's own profile; `account`: a target account's.")).build()
}

answer! {
    /// A page that was fetched for a profile.
    pub(crate) struct ProfileSourceAnswer from ProfileSource {
        /// Its URL.
        url: String,
        /// When it was fetched.
        fetched_at: Timestamp,
        /// The status of the answer; null if there was none.
        #[schema(required)]
        status: Option<u16>,
        /// What went wrong; null for nothing.
        #[schema(required)]
        error: Option<String>,
    }
}

answer! {
    /// A company profile.
    pub(crate) struct CompanyProfileAnswer from |profile: CompanyProfile| {
        /// The profile's id.
        id: String,
        /// Whose profile it is.
        #[schema(schema_with = kinds)]
        kind: ProfileKind,
        /// What the organization calls the company.
        label: String,
        /// The origin of the website; null for none.
        #[schema(required)]
        website: Option<String> = profile.website.as_ref().map(ToString::to_string),
        /// The id of the company with the website's domain, recorded or not; null without a domain.
        #[schema(required)]
        company_id: Option<String> = company_id(profile.website.as_ref(), profile.organization),
        /// The company's name; null if unknown, as are the next three.
        #[schema(required)]
        name: Option<String> = profile.fields.name,
        /// What it does.
        #[schema(required)]
        description: Option<String> = profile.fields.description,
        /// Its industry.
        #[schema(required)]
        industry: Option<String> = profile.fields.industry,
        /// The URL of its logo.
        #[schema(required)]
        logo_url: Option<String> = profile.fields.logo_url,
        /// Its pages elsewhere, by the name of the site.
        social: BTreeMap<String, String> = profile.fields.social,
        /// Its e-mail addresses.
        emails: Vec<String> = profile.fields.emails,
        /// The technologies of its website.
        technologies: Vec<String> = profile.fields.technologies,
        /// The pages that were fetched for it.
        sources: Vec<ProfileSourceAnswer> = shown(profile.sources),
        /// When the profile was made.
        created_at: Timestamp,
        /// When it was last changed.
        updated_at: Timestamp,
    }
}

/// A part of the company profiles.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CompanyProfilesAnswer {
    /// The profiles, newest first.
    company_profiles: Vec<CompanyProfileAnswer>,
    /// Whether older ones follow.
    truncated: bool,
}

/// Returns the id of the company with the website of a profile.
fn company_id(website: Option<&Website>, organization: OrganizationId) -> Option<String> {
    let domain = website.and_then(Website::domain).and_then(normalise_domain)?;
    Some(PublicCompany::of(&domain).to_id(organization))
}

/// The id in the path.
fn profile_id(request: &HttpRequest) -> Result<CompanyProfileId> {
    request.parameter("profile_id").parse().map_err(|_| ApiError::not_found("company profile"))
}

/// The company profiles of the organization.
#[utoipa::path(
    get, path = "/company-profiles", tag = "profiles", operation_id = "list_company_profiles",
    params(CompanyProfileParameters),
    responses(
        (status = 200, description = "The profiles, newest first.", body = CompanyProfilesAnswer),
        NotModified, UnavailableErrors,
    ),
)]
pub(crate) async fn list(ApiCall { state, request, .. }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    let CompanyProfileParameters { limit, starting_after } =
        CompanyProfileParameters::read(&request, &Calendar::new(&state, Timezone::UTC))?;
    let query = ProfileQuery { limit: limit.rows(), starting_after: after(starting_after)? };
    let organization = caller.organization();
    let page = on_feature(&state, move |profiles: &Profiles| profiles.store().page(organization, &query)).await?;
    let company_profiles = page.profiles.into_iter().map(Into::into).collect();
    etag::json(&request, &CompanyProfilesAnswer { company_profiles, truncated: page.truncated })
}

/// Makes a profile of a target account. The organization needs the capability `target_accounts`.
#[utoipa::path(
    post, path = "/company-profiles", tag = "profiles", operation_id = "create_company_profile",
    request_body = ProfilePatch,
    responses((status = 201, description = "The profile.", body = CompanyProfileAnswer), ConflictErrors),
)]
pub(crate) async fn create(ApiCall { state, request, payload }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    auth::capable(&state, &caller, Capability::TargetAccounts)?;
    let body: ProfilePatch = json::read(&state, &request, payload).await?;
    let (organization, author, new) = (caller.organization(), caller.author(&state, &request), NewCompanyProfile(body));
    let make = move |profiles: &Profiles| profiles.store().create(organization, new, author);
    Ok(management::created(&CompanyProfileAnswer::from(on_feature(&state, make).await?)))
}

/// One company profile.
#[utoipa::path(
    get, path = "/company-profiles/{profile_id}", tag = "profiles", operation_id = "get_company_profile",
    params(CompanyProfilePath),
    responses((status = 200, description = "The profile.", body = CompanyProfileAnswer), NotModified, UnavailableErrors),
)]
pub(crate) async fn show(ApiCall { state, request, .. }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    NoParameters::check(&request)?;
    let (organization, id) = (caller.organization(), profile_id(&request)?);
    let profile = on_feature(&state, move |profiles: &Profiles| profiles.store().get(organization, &id)).await?;
    etag::json(&request, &CompanyProfileAnswer::from(profile))
}

/// Changes a company profile: all fields of the body, or none.
#[utoipa::path(
    patch, path = "/company-profiles/{profile_id}", tag = "profiles", operation_id = "update_company_profile",
    params(CompanyProfilePath), request_body = ProfilePatch,
    responses((status = 200, description = "The profile as it is now.", body = CompanyProfileAnswer), ConflictErrors),
)]
pub(crate) async fn change(ApiCall { state, request, payload }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    NoParameters::check(&request)?;
    let id = profile_id(&request)?;
    let body: ProfilePatch = json::read(&state, &request, payload).await?;
    let (organization, author) = (caller.organization(), caller.author(&state, &request));
    let change = move |profiles: &Profiles| profiles.store().change(organization, &id, &body, author);
    let profile = on_feature(&state, change).await?;
    Ok(HttpResponse::Ok().json(CompanyProfileAnswer::from(profile)))
}

/// Removes a company profile.
#[utoipa::path(
    delete, path = "/company-profiles/{profile_id}", tag = "profiles", operation_id = "delete_company_profile",
    params(CompanyProfilePath),
    responses((status = 204, description = "The profile is removed.")),
)]
pub(crate) async fn remove(ApiCall { state, request, .. }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    NoParameters::check(&request)?;
    let id = profile_id(&request)?;
    let (organization, author) = (caller.organization(), caller.author(&state, &request));
    let remove = move |profiles: &Profiles| profiles.store().remove(organization, &id, author);
    on_feature(&state, remove).await?;
    Ok(HttpResponse::NoContent().finish())
}

json_body! {
    /// The website to read, and the profile to fill.
    #[schema(example = json!({"website": "acme.com"}))]
    pub(crate) struct BuildShape {
        /// The website: a URL, or a host. Its home page is read, and up to four pages about the company.
        #[schema(max_length = 2048)]
        website: String = required("a string"),
        /// The profile to fill: `cp_…`. The default is the one with this website, else the organization's own, which is made if it is missing.
        #[schema(pattern = "^cp_[0-9A-Za-z]{16}$")]
        profile_id: Option<String> = optional("a string"),
    }
}

/// A run that began, or that is under way for the profile.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BuildStartedAnswer {
    /// The run's id.
    run_id: String,
}

fn statuses() -> Object {
    let names = ["queued", "running", "succeeded", "failed"];
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names)).description(Some("How far the run is.")).build()
}

/// Why a run failed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BuildErrorAnswer {
    /// A stable code: `blocked_address`, `dns_failed`, `connect_failed`, `tls_failed`, `timeout`, `too_many_redirects`, `robots_disallowed`, `http_status`,
    /// `not_html`, `too_large`, `invalid_url`, `profile_deleted`, `profile_damaged`, `website_mismatch`, `website_taken`, `given_up`, `internal_error`.
    code: String,
    /// The reason in words.
    message: String,
    /// The URL that could not be read; null if that is not the reason.
    #[schema(required)]
    url: Option<String>,
}

/// A run.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProfileBuildAnswer {
    /// The run's id.
    run_id: String,
    /// How far the run is.
    #[schema(schema_with = statuses)]
    status: &'static str,
    /// Why it failed; null if it did not.
    #[schema(required)]
    error: Option<BuildErrorAnswer>,
    /// The profile as it is now; null until the run succeeded, and if the profile was removed since.
    #[schema(required)]
    profile: Option<CompanyProfileAnswer>,
    /// How many Actions it took. None if it failed: they were given back.
    #[schema(minimum = 0)]
    actions_spent: u64,
}

impl From<ProfileBuild> for ProfileBuildAnswer {
    fn from(build: ProfileBuild) -> Self {
        let ProfileBuild { run, is_running, profile } = build;
        let actions_spent = run.spent();
        let result = run.outcome.map(|outcome| outcome.result);
        let status = match &result {
            Some(Ok(_)) => "succeeded",
            Some(Err(_)) => "failed",
            None if is_running => "running",
            None => "queued",
        };
        let error = result.and_then(Result::err);
        let error = error.map(|BuildError { code, message, url }| BuildErrorAnswer { code, message, url });
        Self { run_id: run.id.into(), status, error, profile: profile.map(Into::into), actions_spent }
    }
}

/// Builds a company profile from its website, in the background. It fills only the fields that are empty. The first profile of an organization is free; others
/// cost one Action, which is given back if the build fails. While a run for the profile is under way, its id is returned, and nothing is taken.
#[utoipa::path(
    post, path = "/company-profiles/build", tag = "profiles", operation_id = "build_company_profile",
    request_body = BuildShape,
    responses(
        (status = 202, description = "The run. Ask for it every few seconds.", body = BuildStartedAnswer), NotFoundErrors, ConflictErrors,
    ),
)]
pub(crate) async fn build(ApiCall { state, request, payload }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    let BuildShape { website, profile_id } = json::read(&state, &request, payload).await?;
    let profile = match profile_id {
        Some(id) => Some(id.parse().map_err(|_| ApiError::not_found("company profile"))?),
        None => None,
    };
    let (organization, author) = (caller.organization(), caller.author(&state, &request));
    let asked = BuildRequest { website, profile };
    let begin = move |profiles: &Profiles| profiles.begin_build(organization, &asked, author);
    let run = on_feature(&state, begin).await?;
    Ok(HttpResponse::Accepted().json(BuildStartedAnswer { run_id: run.id.into() }))
}

/// A run that builds a company profile, for 30 days after its end.
#[utoipa::path(
    get, path = "/company-profiles/builds/{run_id}", tag = "profiles", operation_id = "get_company_profile_build",
    params(BuildRunPath),
    responses((status = 200, description = "The run.", body = ProfileBuildAnswer), NotModified, UnavailableErrors),
)]
pub(crate) async fn show_build(ApiCall { state, request, .. }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    NoParameters::check(&request)?;
    let id: BuildRunId = request.parameter("run_id").parse().map_err(|_| ApiError::not_found("build run"))?;
    let organization = caller.organization();
    let build = on_feature(&state, move |profiles: &Profiles| profiles.build(organization, &id)).await?;
    etag::json(&request, &ProfileBuildAnswer::from(build))
}
