//! `/projects` and `/projects/{project_id}`.

use headcount_api::endpoint::*;
use headcount_api::management;
use headcount_api::openapi::schemas;
use headcount_control::{MAX_QUOTA, NewProject, OwnQuotas, Project, ProjectPatch, RateLimit, RateLimitPatch};
use headcount_domain::intake::policy::{BotPolicy, SignalsPolicy};
use headcount_domain::{Currency, Day, OrganizationId, Quotas};
use serde_json::value::RawValue;
use utoipa::openapi::schema::{AdditionalProperties, Object, ObjectBuilder, Schema, Type};

json_body! {
    /// A project to be made.
    #[schema(example = json!({"name": "Shop", "currency": "EUR", "allowed_origins": ["https://shop.example"]}))]
    pub(crate) struct NewProjectShape into NewProject {
        /// Its name.
        #[schema(min_length = 1, max_length = 200)]
        name: String = required("a string"),
        /// The currency of its figures: an ISO 4217 code of any case. Default: USD.
        #[schema(pattern = "^[A-Za-z]{3}$", value_type = Option<String>)]
        currency: Option<Currency> = optional("an ISO 4217 currency code such as EUR"),
        /// Which web origins may send events, such as `https://example.com`; empty: any. Default: empty.
        #[schema(max_items = 100)]
        allowed_origins: Option<Vec<String>> = optional("a list of origins such as [\"https://example.com\"]"),
        /// Whether visitors without ids are distinguished by a daily hash. Default: true.
        cookieless: Option<bool> = optional("true or false"),
        /// The policy for events of crawlers, monitors and previewers. Default: `drop`.
        #[schema(schema_with = schemas::bots)]
        bots: Option<BotPolicy> = optional("\"drop\" or \"record\""),
        /// The policy for events that carry a privacy signal. Default: `record`.
        #[schema(schema_with = schemas::signals_policy)]
        signals_policy: Option<SignalsPolicy> = optional("\"record\", \"anonymize\" or \"drop\""),
        /// Whether money sent with a public key is kept on the event and not counted. Default: false.
        server_only_revenue: Option<bool> = optional("true or false"),
        /// For how many days events are kept, today included. Default: for ever.
        #[schema(minimum = 1, maximum = 3660)]
        retention_days: Option<u32> = optional("an integer from 1 to 3660"),
        /// Hosts of its own sites, each with its subdomains: links from there are no referrers. Links within one registrable domain never are. Default: empty.
        #[schema(max_items = 100)]
        own_domains: Option<Vec<String>> = optional("a list of hosts such as [\"blog.example\"]"),
        /// Other hosts that are no referrers, each with its subdomains: tills and sign-in pages that the server doesn't know. Default: empty.
        #[schema(max_items = 100)]
        ignored_referrers: Option<Vec<String>> = optional("a list of hosts such as [\"pay.example\"]"),
    }
}

json_body! {
    /// A change of a project: absent fields stay unchanged.
    #[schema(example = json!({"name": "Shop", "bots": "record"}))]
    pub(crate) struct ProjectPatchShape {
        /// Another name.
        #[schema(min_length = 1, max_length = 200)]
        name: Option<String> = optional("a string"),
        /// Another currency, as long as the project has recorded no event.
        #[schema(pattern = "^[A-Za-z]{3}$", value_type = Option<String>)]
        currency: Option<Currency> = optional("an ISO 4217 currency code such as EUR"),
        /// Replaces the whole list.
        #[schema(max_items = 100)]
        allowed_origins: Option<Vec<String>> = optional("a list of origins such as [\"https://example.com\"]"),
        /// Whether visitors without ids are distinguished by a daily hash.
        cookieless: Option<bool> = optional("true or false"),
        /// The policy for events of crawlers, monitors and previewers.
        #[schema(schema_with = schemas::bots)]
        bots: Option<BotPolicy> = optional("\"drop\" or \"record\""),
        /// The policy for events that carry a privacy signal.
        #[schema(schema_with = schemas::signals_policy)]
        signals_policy: Option<SignalsPolicy> = optional("\"record\", \"anonymize\" or \"drop\""),
        /// Whether money sent with a public key is kept on the event and not counted.
        server_only_revenue: Option<bool> = optional("true or false"),
        /// For how many days events are kept, today included; null: for ever. Events that are gone don't come back.
        #[schema(value_type = Option<u32>, minimum = 1, maximum = 3660)]
        retention_days: Option<Option<u32>> = with(read_retention),
        /// How many events a second may be sent with its public keys together; 0: no limit, and no burst.
        #[schema(maximum = 1_000_000)]
        rate_limit: Option<u32> = optional(schemas::up_to_rate("events a second, 0 for no limit")),
        /// How many may be sent at once after a pause, at least 1 where there is a limit. Default: as many as `rate_limit`.
        #[schema(maximum = 1_000_000)]
        burst: Option<u32> = optional(schemas::up_to_rate("events at once")),
        /// How many different groups, companies, pages and sources it may have over its lifetime.
        #[schema(schema_with = quotas_schema)]
        quotas: OwnQuotas = with(read_quotas),
        /// Replaces the whole list of hosts of its own sites. It holds for events that are recorded from then on.
        #[schema(max_items = 100)]
        own_domains: Option<Vec<String>> = optional("a list of hosts such as [\"blog.example\"]"),
        /// Replaces the whole list of other hosts that are no referrers. It holds for events that are recorded from then on.
        #[schema(max_items = 100)]
        ignored_referrers: Option<Vec<String>> = optional("a list of hosts such as [\"pay.example\"]"),
    }
}

/// A project, the first day of which it keeps events, and its quotas.
pub(crate) struct ShownProject<'p> {
    project: &'p Project,
    floor: Option<Day>,
    quotas: Quotas,
}

answer! {
    /// A project.
    pub(crate) struct ProjectAnswer from |shown: ShownProject<'_>| {
        /// Its id.
        project_id: String = shown.project.id.to_string(),
        /// Its name.
        name: String = shown.project.name.clone(),
        /// The currency of its figures.
        currency: String = shown.project.currency.to_string(),
        /// Its newest public key: the one to put into pages.
        public_key: String = shown.project.public_keys.last().cloned().unwrap_or_default(),
        /// All keys that are valid, oldest first.
        public_keys: Vec<String> = shown.project.public_keys.clone(),
        /// Which web origins may send events; empty: any.
        allowed_origins: Vec<String> = shown.project.allowed_origins.clone(),
        /// Whether visitors without ids are distinguished by a daily hash.
        cookieless: bool = shown.project.cookieless,
        /// The policy for events of crawlers, monitors and previewers.
        #[schema(schema_with = schemas::bots)]
        bots: BotPolicy = shown.project.bots,
        /// The policy for events that carry a privacy signal.
        #[schema(schema_with = schemas::signals_policy)]
        signals_policy: SignalsPolicy = shown.project.signals_policy,
        /// Whether money sent with a public key is kept on the event and not counted.
        server_only_revenue: bool = shown.project.server_only_revenue,
        /// For how many days events are kept, today included; null: for ever.
        #[schema(required)]
        retention_days: Option<u32> = shown.project.retention_days,
        /// The first day of which events are kept; null: all days. It never falls.
        #[schema(required, value_type = Option<String>, format = Date)]
        retention_floor: Option<String> = shown.floor.map(|floor| floor.to_string()),
        /// How many events a second may be sent with its public keys together; 0: no limit.
        #[schema(maximum = 1_000_000)]
        rate_limit: u32 = shown.project.rate_limit.map_or(0, |limit| limit.per_second),
        /// How many may be sent at once after a pause; 0: no limit.
        #[schema(maximum = 1_000_000)]
        burst: u32 = shown.project.rate_limit.map_or(0, RateLimit::burst),
        /// How many different things it may have over its lifetime.
        quotas: QuotasAnswer,
        /// Hosts of its own sites, each with its subdomains: links from there are no referrers.
        own_domains: Vec<String> = shown.project.own_domains.clone(),
        /// Other hosts that are no referrers, each with its subdomains.
        ignored_referrers: Vec<String> = shown.project.ignored_referrers.clone(),
        /// When it was made.
        created_at: Timestamp = shown.project.created_at.into(),
    }
}

/// The projects of an organization.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProjectsAnswer {
    /// The projects, oldest first.
    projects: Vec<ProjectAnswer>,
    /// Whether some are left out: never.
    truncated: bool,
}

/// Reads a field whose null has a meaning: the outer `None` is an absent one.
fn read_retention(fields: &Fields<'_>, name: &str) -> Result<Option<Option<u32>>> {
    let days = fields.optional::<u32>(name, "an integer from 1 to 3660, or null")?;
    Ok(fields.has(name).then_some(days))
}

impl ProjectAnswer {
    /// Shows a project and the first day of which it keeps events.
    async fn of(state: &AppState, organization: OrganizationId, project: &Project) -> Result<Self> {
        let floors = state.engine.floors(organization, &[project.id]).await?;
        let floor = floors.into_iter().flatten().next();
        Ok(ShownProject { project, floor, quotas: state.engine.ingest.quotas(project.id) }.into())
    }
}

impl From<ProjectPatchShape> for ProjectPatch {
    fn from(shape: ProjectPatchShape) -> Self {
        let ProjectPatchShape { name, currency, allowed_origins, cookieless, bots, signals_policy, server_only_revenue, .. } =
            shape;
        let ProjectPatchShape { retention_days, rate_limit, burst, quotas, own_domains, ignored_referrers, .. } = shape;
        let rate_limit = RateLimitPatch { per_second: rate_limit, burst };
        Self {
            name,
            currency,
            allowed_origins,
            cookieless,
            bots,
            signals_policy,
            server_only_revenue,
            retention_days,
            rate_limit,
            quotas,
            own_domains,
            ignored_referrers,
        }
    }
}

/// The projects of the organization.
#[utoipa::path(
    get, path = "/projects", tag = "management", operation_id = "list_projects",
    responses((status = 200, description = "The projects, oldest first.", body = ProjectsAnswer), NotModified),
)]
pub(crate) async fn list(ApiCall { state, request, .. }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    NoParameters::check(&request)?;
    let projects = state.engine.registry().projects(caller.organization())?;
    let ids: Vec<_> = projects.iter().map(|project| project.id).collect();
    let floors = state.engine.floors(caller.organization(), &ids).await?;
    let shown = projects.iter().zip(floors);
    let quotas = |project| state.engine.ingest.quotas(project);
    let projects = shown.map(|(project, floor)| ShownProject { project, floor, quotas: quotas(project.id) }.into()).collect();
    etag::json(&request, &ProjectsAnswer { projects, truncated: false })
}

/// Makes a project, with one public key.
#[utoipa::path(
    post, path = "/projects", tag = "management", operation_id = "create_project",
    request_body = NewProjectShape,
    responses((status = 201, description = "The project.", body = ProjectAnswer), ConflictErrors),
)]
pub(crate) async fn create(ApiCall { state, request, payload }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    NoParameters::check(&request)?;
    let organization = caller.organization();
    let new = json::read::<NewProjectShape>(&state, &request, payload).await?.into();
    let project = management::change(&state, caller.author(&state, &request), move |registry, by| {
        registry.create_project(organization, new, by)
    })
    .await?;
    apply_retention(&state, &project).await;
    // It is made, whether or not its owner can say of which days it keeps events.
    let answer = ProjectAnswer::of(&state, organization, &project).await;
    let quotas = || state.engine.ingest.quotas(project.id);
    let answer = answer.unwrap_or_else(|_| ShownProject { project: &project, floor: None, quotas: quotas() }.into());
    Ok(management::created(&answer))
}

/// One project.
#[utoipa::path(
    get, path = "/projects/{project_id}", tag = "management", operation_id = "get_project",
    params(ProjectPath),
    responses((status = 200, description = "The project.", body = ProjectAnswer), NotModified),
)]
pub(crate) async fn show(ApiCall { state, request, .. }: ApiCall, caller: ProjectCaller) -> Result<HttpResponse> {
    let (organization, id, _) = management::of_project(&state, &request, &caller)?;
    let project = state.engine.registry().project(organization, id)?;
    etag::json(&request, &ProjectAnswer::of(&state, organization, &project).await?)
}

/// Changes a project: all fields of the body, or none.
#[utoipa::path(
    patch, path = "/projects/{project_id}", tag = "management", operation_id = "update_project",
    params(ProjectPath), request_body = ProjectPatchShape,
    responses((status = 200, description = "The project as it is now.", body = ProjectAnswer), ConflictErrors),
)]
pub(crate) async fn change(ApiCall { state, request, payload }: ApiCall, caller: ProjectCaller) -> Result<HttpResponse> {
    let (organization, id, author) = management::of_project(&state, &request, &caller)?;
    let patch: ProjectPatch = json::read::<ProjectPatchShape>(&state, &request, payload).await?.into();
    let has_quotas = patch.quotas != OwnQuotas::default();
    let project =
        management::change(&state, author, move |registry, by| registry.update_project(organization, id, patch, by)).await?;
    apply_retention(&state, &project).await;
    if has_quotas && let Err(error) = state.engine.ingest.apply_quotas(project.id).await {
        tracing::warn!(project = %project.id, %error, "the quotas of a project hold as soon as its numbers change");
    }
    Ok(HttpResponse::Ok().json(ProjectAnswer::of(&state, organization, &project).await?))
}

/// Applies a retention at once. One that can't be applied now is tried again every hour.
async fn apply_retention(state: &AppState, project: &Project) {
    if project.retention_days.is_some()
        && let Err(error) = state.engine.ingest.apply_retention(project.id).await
    {
        tracing::warn!(project = %project.id, %error, "the retention of a project could not be applied; it is tried again");
    }
}

/// Deletes a project with everything that was recorded of it, its public keys and the tokens that are for it alone.
///
/// From the next request on, the project is unknown and part of no figure. Its files are removed in the background. Tokens of the project itself can't delete
/// it. Backups that were made before still have it.
#[utoipa::path(
    delete, path = "/projects/{project_id}", tag = "management", operation_id = "delete_project",
    params(ProjectPath),
    responses((status = 204, description = "The project is deleted.")),
)]
pub(crate) async fn remove(ApiCall { state, request, .. }: ApiCall, caller: ProjectCaller) -> Result<HttpResponse> {
    let (organization, project, author) = management::of_project(&state, &request, &caller)?;
    // Not for a token of the project.
    caller.caller.check_organization_wide()?;
    management::on_engine(&state, move |engine| engine.delete_project(organization, project, author)).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// How many different things a project may have over its lifetime. An event with one more is refused: 429 `quota_exceeded`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QuotasAnswer {
    /// Groups.
    groups: u64,
    /// Companies.
    companies: u64,
    /// Pages.
    pages: u64,
    /// Sources, mediums, campaigns and referrers, together.
    sources: u64,
}

impl From<Quotas> for QuotasAnswer {
    fn from(quotas: Quotas) -> Self {
        let Quotas { groups, companies, sources, pages } = quotas;
        Self { groups: groups as u64, companies: companies as u64, pages: pages as u64, sources: sources as u64 }
    }
}

/// The schema of the quotas to change.
fn quotas_schema() -> Object {
    let quota = || ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).maximum(Some(MAX_QUOTA));
    let names = OwnQuotas::default().named().map(|(name, _)| name);
    names
        .into_iter()
        .fold(ObjectBuilder::new().schema_type(Type::Object), |object, name| object.property(name, quota()))
        .description(Some("The quotas to change. Absent ones stay unchanged."))
        .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)))
        .build()
}

/// Reads the quotas to change.
fn read_quotas(fields: &Fields<'_>, name: &str) -> Result<OwnQuotas> {
    let Some(object) = fields.optional::<&RawValue>(name, "an object such as {\"pages\": 5000}")? else {
        return Ok(OwnQuotas::default());
    };
    let mut quotas = OwnQuotas::default();
    let names = quotas.named().map(|(name, _)| name);
    let own = Fields::read(object.get().as_bytes(), &names).map_err(|error| error.within(name))?;
    for (kind, quota) in quotas.named() {
        *quota = own.optional(kind, format!("an integer from 1 to {MAX_QUOTA}")).map_err(|error| error.within(name))?;
    }
    Ok(quotas)
}
