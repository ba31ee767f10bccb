//! `/company-profiles/build` and `/company-profiles/builds`.

use actix_web::{HttpRequest, HttpResponse, web};
use headcount_actors::profiles::{BuildRequest, ProfileBuild};
use headcount_control::{BuildError, BuildRunId, Scope};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};

use crate::http::app::AppState;
use crate::http::extract::auth::{self, Caller, MinRole};
use crate::http::extract::json::{self, BodyArguments, json_body};
use crate::http::extract::path::BuildRunPath;
use crate::http::extract::query::NoParameters;
use crate::http::openapi::responses::{BodyErrors, ConflictErrors, NotFoundErrors, NotModified, TokenErrors, UnavailableErrors};
use crate::http::resources::company_profiles::CompanyProfileAnswer;
use crate::http::resources::management;
use crate::http::respond::error::ApiError;
use crate::http::respond::etag;

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

fn caller(state: &AppState, request: &HttpRequest, scope: Scope) -> Result<Caller, ApiError> {
    auth::organization_wide(state, request, scope, MinRole::Admin)
}

/// Builds a company profile from its website, in the background. It fills only the fields that are empty. The first profile of an organization is free; others
/// cost one Action, which is given back if the build fails. While a run for the profile is under way, its id is returned, and nothing is taken.
#[utoipa::path(
    post, path = "/company-profiles/build", tag = "profiles", operation_id = "build_company_profile",
    request_body = BuildShape,
    responses(
        (status = 202, description = "The run. Ask for it every few seconds.", body = BuildStartedAnswer),
        TokenErrors, NotFoundErrors, ConflictErrors, BodyErrors, UnavailableErrors,
    ),
)]
pub(crate) async fn build((state, request, payload): BodyArguments) -> Result<HttpResponse, ApiError> {
    let caller = caller(&state, &request, Scope::CompaniesWrite)?;
    NoParameters::check(&request)?;
    let BuildShape { website, profile_id } = json::read(&state, &request, payload).await?;
    let profile = match profile_id {
        Some(id) => Some(id.parse().map_err(|_| ApiError::not_found("company profile"))?),
        None => None,
    };
    let (organization, author) = (caller.organization(), caller.author(&state, &request));
    let asked = BuildRequest { website, profile };
    let begin = move |engine: &headcount_actors::Engine| engine.build_company_profile(organization, &asked, author);
    let run = management::on_engine(&state, begin).await?;
    Ok(HttpResponse::Accepted().json(BuildStartedAnswer { run_id: run.id.into() }))
}

/// A run that builds a company profile, for 30 days after its end.
#[utoipa::path(
    get, path = "/company-profiles/builds/{run_id}", tag = "profiles", operation_id = "get_company_profile_build",
    params(BuildRunPath),
    responses(
        (status = 200, description = "The run.", body = ProfileBuildAnswer),
        NotModified, TokenErrors, NotFoundErrors, UnavailableErrors,
    ),
)]
pub(crate) async fn show(state: web::Data<AppState>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let caller = caller(&state, &request, Scope::CompaniesRead)?;
    NoParameters::check(&request)?;
    let id: BuildRunId = request.match_info().query("run_id").parse().map_err(|_| ApiError::not_found("build run"))?;
    let organization = caller.organization();
    let build = management::on_engine(&state, move |engine| engine.company_profile_build(organization, &id)).await?;
    etag::json(&request, &ProfileBuildAnswer::from(build))
}
