//! `/company-profiles`.

use std::collections::BTreeMap;

use actix_web::{HttpRequest, HttpResponse, web};
use headcount_actors::profiles::{
    CompanyProfile, NewCompanyProfile, ProfileFields, ProfileKind, ProfilePatch, ProfileQuery, ProfileSource, Website,
};
use headcount_control::{Capability, CompanyProfileId, Scope};
use headcount_domain::company::normalise_domain;
use headcount_domain::ids::PublicCompany;
use headcount_domain::names::NamedValues;
use headcount_domain::time::Timezone;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};

use crate::http::app::AppState;
use crate::http::extract::auth::{self, Caller, MinRole};
use crate::http::extract::json::{self, BodyArguments, json_body};
use crate::http::extract::parameters::{ListLimit, Text};
use crate::http::extract::path::CompanyProfilePath;
use crate::http::extract::query::{Calendar, NoParameters, QueryParameters as _, query_parameters};
use crate::http::openapi::responses::{
    BodyErrors, ConflictErrors, NotFoundErrors, NotModified, QuestionErrors, TokenErrors, UnavailableErrors,
};
use crate::http::resources::management;
use crate::http::respond::answer::Timestamp;
use crate::http::respond::error::ApiError;
use crate::http::respond::etag;

json_body! {
    /// The fields of a company profile: absent fields stay unchanged, empty ones are removed.
    #[schema(example = json!({"label": "Acme", "website": "acme.com", "industry": "Anvils"}))]
    pub(crate) struct CompanyProfileShape {
        /// What the organization calls the company. Of a new profile the default is the host of `website`.
        #[schema(max_length = 200)]
        label: Option<String> = optional("a string"),
        /// The website: a URL, or a host. Its origin is kept. No two profiles have the same host and port; `www.` makes no difference.
        #[schema(max_length = 2048)]
        website: Option<String> = optional("a string"),
        /// The company's name.
        #[schema(max_length = 200)]
        name: Option<String> = optional("a string"),
        /// What it does.
        #[schema(max_length = 5000)]
        description: Option<String> = optional("a string"),
        /// Its industry.
        #[schema(max_length = 200)]
        industry: Option<String> = optional("a string"),
        /// The URL of its logo.
        #[schema(max_length = 2048)]
        logo_url: Option<String> = optional("a string"),
        /// Its pages elsewhere, by the name of the site. Replaces all.
        social: Option<BTreeMap<String, String>> = optional("an object of strings"),
        /// Its e-mail addresses. Replaces all.
        #[schema(max_items = 50)]
        emails: Option<Vec<String>> = optional("a list of strings"),
        /// The technologies of its website. Replaces all.
        #[schema(max_items = 50)]
        technologies: Option<Vec<String>> = optional("a list of strings"),
    }
}

impl From<CompanyProfileShape> for ProfilePatch {
    fn from(shape: CompanyProfileShape) -> Self {
        let CompanyProfileShape { label, website, name, description, industry, logo_url, social, emails, technologies } = shape;
        Self { label, website, name, description, industry, logo_url, social, emails, technologies }
    }
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

/// A page that was fetched for a profile.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProfileSourceAnswer {
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

/// A company profile.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CompanyProfileAnswer {
    /// The profile's id.
    id: String,
    /// Whose profile it is.
    #[schema(schema_with = kinds)]
    kind: ProfileKind,
    /// What the organization calls the company.
    label: String,
    /// The origin of the website; null for none.
    #[schema(required)]
    website: Option<String>,
    /// The id of the company with the website's domain, recorded or not; null without a domain.
    #[schema(required)]
    company_id: Option<String>,
    /// The company's name; null if unknown, as are the next three.
    #[schema(required)]
    name: Option<String>,
    /// What it does.
    #[schema(required)]
    description: Option<String>,
    /// Its industry.
    #[schema(required)]
    industry: Option<String>,
    /// The URL of its logo.
    #[schema(required)]
    logo_url: Option<String>,
    /// Its pages elsewhere, by the name of the site.
    social: BTreeMap<String, String>,
    /// Its e-mail addresses.
    emails: Vec<String>,
    /// The technologies of its website.
    technologies: Vec<String>,
    /// The pages that were fetched for it.
    sources: Vec<ProfileSourceAnswer>,
    /// When the profile was made.
    created_at: Timestamp,
    /// When it was last changed.
    updated_at: Timestamp,
}

/// A part of the company profiles.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CompanyProfilesAnswer {
    /// The profiles, newest first.
    company_profiles: Vec<CompanyProfileAnswer>,
    /// Whether older ones follow.
    truncated: bool,
}

impl From<ProfileSource> for ProfileSourceAnswer {
    fn from(source: ProfileSource) -> Self {
        let ProfileSource { url, fetched_at, status, error } = source;
        Self { url, fetched_at: fetched_at.into(), status, error }
    }
}

impl From<CompanyProfile> for CompanyProfileAnswer {
    fn from(profile: CompanyProfile) -> Self {
        let CompanyProfile { id, organization, kind, label, website, fields, sources, created_at, updated_at } = profile;
        let ProfileFields { name, description, industry, logo_url, social, emails, technologies } = fields;
        let domain = website.as_ref().and_then(Website::domain).and_then(normalise_domain);
        Self {
            id: id.into(),
            kind,
            label,
            company_id: domain.map(|domain| PublicCompany::of(&domain).to_id(organization)),
            website: website.map(Into::into),
            name,
            description,
            industry,
            logo_url,
            social,
            emails,
            technologies,
            sources: sources.into_iter().map(Into::into).collect(),
            created_at: created_at.into(),
            updated_at: updated_at.into(),
        }
    }
}

fn caller(state: &AppState, request: &HttpRequest, scope: Scope) -> Result<Caller, ApiError> {
    auth::organization_wide(state, request, scope, MinRole::Admin)
}

/// The id in the path.
fn profile_id(request: &HttpRequest) -> Result<CompanyProfileId, ApiError> {
    request.match_info().query("profile_id").parse().map_err(|_| ApiError::not_found("company profile"))
}

/// The company profiles of the organization.
#[utoipa::path(
    get, path = "/company-profiles", tag = "profiles", operation_id = "list_company_profiles",
    params(CompanyProfileParameters),
    responses(
        (status = 200, description = "The profiles, newest first.", body = CompanyProfilesAnswer),
        NotModified, QuestionErrors,
    ),
)]
pub(crate) async fn list(state: web::Data<AppState>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let caller = caller(&state, &request, Scope::CompaniesRead)?;
    let CompanyProfileParameters { limit, starting_after } =
        CompanyProfileParameters::read(&request, &Calendar::new(&state, Timezone::UTC))?;
    let id = |Text(id): Text<64>| -> Result<CompanyProfileId, ApiError> {
        id.parse().map_err(|error| ApiError::parameter("starting_after", format!("{error}")))
    };
    let query = ProfileQuery { limit: limit.rows(), starting_after: starting_after.map(id).transpose()? };
    let organization = caller.organization();
    let page = management::on_engine(&state, move |engine| engine.company_profiles(organization, &query)).await?;
    let company_profiles = page.profiles.into_iter().map(Into::into).collect();
    etag::json(&request, &CompanyProfilesAnswer { company_profiles, truncated: page.truncated })
}

/// Makes a profile of a target account. The organization needs the capability `target_accounts`.
#[utoipa::path(
    post, path = "/company-profiles", tag = "profiles", operation_id = "create_company_profile",
    request_body = CompanyProfileShape,
    responses(
        (status = 201, description = "The profile.", body = CompanyProfileAnswer),
        TokenErrors, ConflictErrors, BodyErrors, UnavailableErrors,
    ),
)]
pub(crate) async fn create((state, request, payload): BodyArguments) -> Result<HttpResponse, ApiError> {
    let caller = caller(&state, &request, Scope::CompaniesWrite)?;
    auth::capable(&state, &caller, Capability::TargetAccounts)?;
    NoParameters::check(&request)?;
    let body: CompanyProfileShape = json::read(&state, &request, payload).await?;
    let (organization, author, new) = (caller.organization(), caller.author(&state, &request), NewCompanyProfile(body.into()));
    let make = move |engine: &headcount_actors::Engine| engine.create_company_profile(organization, new, author);
    Ok(management::created(&CompanyProfileAnswer::from(management::on_engine(&state, make).await?)))
}

/// One company profile.
#[utoipa::path(
    get, path = "/company-profiles/{profile_id}", tag = "profiles", operation_id = "get_company_profile",
    params(CompanyProfilePath),
    responses(
        (status = 200, description = "The profile.", body = CompanyProfileAnswer),
        NotModified, TokenErrors, NotFoundErrors, UnavailableErrors,
    ),
)]
pub(crate) async fn show(state: web::Data<AppState>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let caller = caller(&state, &request, Scope::CompaniesRead)?;
    NoParameters::check(&request)?;
    let (organization, id) = (caller.organization(), profile_id(&request)?);
    let profile = management::on_engine(&state, move |engine| engine.company_profile(organization, &id)).await?;
    etag::json(&request, &CompanyProfileAnswer::from(profile))
}

/// Changes a company profile: all fields of the body, or none.
#[utoipa::path(
    patch, path = "/company-profiles/{profile_id}", tag = "profiles", operation_id = "update_company_profile",
    params(CompanyProfilePath),
    request_body = CompanyProfileShape,
    responses(
        (status = 200, description = "The profile as it is now.", body = CompanyProfileAnswer),
        TokenErrors, NotFoundErrors, ConflictErrors, BodyErrors, UnavailableErrors,
    ),
)]
pub(crate) async fn change((state, request, payload): BodyArguments) -> Result<HttpResponse, ApiError> {
    let caller = caller(&state, &request, Scope::CompaniesWrite)?;
    NoParameters::check(&request)?;
    let id = profile_id(&request)?;
    let body: CompanyProfileShape = json::read(&state, &request, payload).await?;
    let (organization, author) = (caller.organization(), caller.author(&state, &request));
    let change = move |engine: &headcount_actors::Engine| engine.change_company_profile(organization, &id, body.into(), author);
    let profile = management::on_engine(&state, change).await?;
    Ok(HttpResponse::Ok().json(CompanyProfileAnswer::from(profile)))
}

/// Removes a company profile.
#[utoipa::path(
    delete, path = "/company-profiles/{profile_id}", tag = "profiles", operation_id = "delete_company_profile",
    params(CompanyProfilePath),
    responses(
        (status = 204, description = "The profile is removed."),
        TokenErrors, NotFoundErrors, UnavailableErrors,
    ),
)]
pub(crate) async fn remove(state: web::Data<AppState>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let caller = caller(&state, &request, Scope::CompaniesWrite)?;
    NoParameters::check(&request)?;
    let id = profile_id(&request)?;
    let (organization, author) = (caller.organization(), caller.author(&state, &request));
    let remove = move |engine: &headcount_actors::Engine| engine.remove_company_profile(organization, &id, author);
    management::on_engine(&state, remove).await?;
    Ok(HttpResponse::NoContent().finish())
}
