//! `/api-tokens`, and `headcount token`.
//!
//! Only an owner can grant more than it has: a token of role admin gives others no role above its
//! own and no scope that it hasn't itself, and revokes no owner's token. An owner's token may give
//! and revoke everything.

use headcount_api::command::{Body, Failure, ManagedServer, ManagementCommand, Reply, all};
use headcount_api::endpoint::*;
use headcount_api::management::{self, role};
use headcount_api::openapi::schemas;
use headcount_control::{ApiToken, MemberId, NewToken, RateLimit, RateLimitPatch, Registry, Role, Scope, TokenId, TokenPatch};
use headcount_domain::{Instant, OrganizationId, ProjectId};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

json_body! {
    /// A token to be made.
    #[schema(example = json!({"name": "dashboard", "role": "admin", "scopes": ["analytics:read", "revenue:read"]}))]
    pub(crate) struct NewTokenShape {
        /// Its name.
        #[schema(min_length = 1, max_length = 200)]
        name: String = required("a string"),
        /// The role in the organization.
        #[schema(schema_with = schemas::role)]
        role: Role = with(role),
        /// What it may be used for: at least one. None implies another.
        #[schema(schema_with = schemas::scopes)]
        scopes: Vec<Scope> = with(scopes),
        /// The one project that it is for. Default: all.
        #[schema(pattern = "^prj_[0-9A-Za-z]{11}$", value_type = Option<String>)]
        project_id: Option<ProjectId> = with(project_id),
        /// From when on it is refused; in the future. Default: never.
        #[schema(format = DateTime, value_type = Option<String>)]
        expires_at: Option<Instant> = with(expires_at),
        /// The member who holds it. The token has the lower of the two roles, and is revoked with the member. Default: none.
        #[schema(pattern = "^mem_[0-9A-Za-z]{16}$", value_type = Option<String>)]
        member_id: Option<MemberId> = with(member_id),
    }
}

json_body! {
    /// A change of a token: absent fields stay unchanged.
    #[schema(example = json!({"rate_limit": 10, "burst": 50}))]
    pub(crate) struct TokenPatchShape {
        /// Another name.
        #[schema(min_length = 1, max_length = 200)]
        name: Option<String> = optional("a string"),
        /// How many requests a second may be sent with it; 0: no limit, and no burst.
        #[schema(maximum = 1_000_000)]
        rate_limit: Option<u32> = optional(schemas::up_to_rate("requests a second, 0 for no limit")),
        /// How many may be sent at once after a pause, at least 1 where there is a limit. Default: as many as `rate_limit`.
        #[schema(maximum = 1_000_000)]
        burst: Option<u32> = optional(schemas::up_to_rate("requests at once")),
    }
}

answer! {
    /// A token, without its secret.
    pub(crate) struct TokenAnswer from |token: &ApiToken| {
        /// Its id, which is not secret.
        token_id: String = token.token_id.to_string(),
        /// Its name.
        name: String = token.name.clone(),
        /// The role in the organization.
        #[schema(schema_with = schemas::role)]
        role: Role,
        /// What it may be used for.
        #[schema(schema_with = schemas::scopes)]
        scopes: Vec<Scope> = token.scopes.clone(),
        /// The one project that it is for; null: all.
        #[schema(required)]
        project_id: Option<String> = token.project.map(|project| project.to_string()),
        /// When it was made.
        created_at: Timestamp,
        /// From when on it is refused; null: never.
        #[schema(required)]
        expires_at: Option<Timestamp> = token.expires_at.map(Into::into),
        /// The member who holds it; null: none.
        #[schema(required)]
        member_id: Option<String> = token.member.as_ref().map(ToString::to_string),
        /// How many requests a second may be sent with it; 0: no limit.
        #[schema(maximum = 1_000_000)]
        rate_limit: u32 = token.rate_limit.map_or(0, |limit| limit.per_second),
        /// How many may be sent at once after a pause; 0: no limit.
        #[schema(maximum = 1_000_000)]
        burst: u32 = token.rate_limit.map_or(0, RateLimit::burst),
    }
}

/// A token that was just made.
#[derive(Debug, Serialize)]
pub(crate) struct NewTokenAnswer {
    token: String,
    #[serde(flatten)]
    made: TokenAnswer,
}

own_schema!(NewTokenAnswer, {
    let mut schema = TokenAnswer::schema();
    if let RefOr::T(Schema::Object(object)) = &mut schema {
        let secret = ObjectBuilder::new().schema_type(Type::String);
        let secret = secret.description(Some("The secret. It is shown here once, and kept nowhere."));
        object.description = Some("A token that was just made.".to_owned());
        object.properties.insert("token".to_owned(), secret.into());
        object.required.insert(0, "token".to_owned());
    }
    schema
});

/// The tokens of an organization.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TokensAnswer {
    /// The tokens, oldest first, those that have expired included.
    api_tokens: Vec<TokenAnswer>,
    /// Whether some are left out: never.
    truncated: bool,
}

fn scopes(fields: &Fields<'_>, name: &str) -> Result<Vec<Scope>> {
    let scopes: Vec<String> = fields.required(name, "a list of scopes such as [\"admin\"]")?;
    let scope = |(i, scope): (usize, &String)| {
        scope.parse().map_err(|error| ApiError::parameter(format!("{name}[{i}]"), format!("{scope:?} {error}")))
    };
    scopes.iter().enumerate().map(scope).collect()
}

fn project_id(fields: &Fields<'_>, name: &str) -> Result<Option<ProjectId>> {
    fields.parsed(name, "the id of a project", |id| id.parse().ok())
}

fn expires_at(fields: &Fields<'_>, name: &str) -> Result<Option<Instant>> {
    fields.parsed(name, "an RFC 3339 date and time", Instant::parse_rfc3339)
}

fn member_id(fields: &Fields<'_>, name: &str) -> Result<Option<MemberId>> {
    fields.parsed(name, "the id of a member", |id| id.parse().ok())
}

/// Whether a token is of role owner, or held by a member of role owner.
fn is_of_owner(registry: &Registry, organization: OrganizationId, role: Role, member: Option<&MemberId>) -> bool {
    let member = member.and_then(|member| registry.member(organization, member).ok());
    role == Role::Owner || member.is_some_and(|member| member.role == Role::Owner)
}

/// Refuses a token with more rights than its creator, unless the creator is an owner.
fn may_make(registry: &Registry, caller: &ApiToken, new: &NewToken) -> Result<()> {
    if caller.role == Role::Owner {
        return Ok(());
    }
    if is_of_owner(registry, caller.organization, new.role, new.member.as_ref()) {
        return Err(ApiError::new(
            ErrorCode::InsufficientRole,
            "only a token of role owner makes tokens of role owner, or for members of role owner",
        ));
    }
    match new.scopes.iter().find(|scope| !caller.has(**scope)) {
        Some(scope) => {
            let message = format!("a token of role admin gives only scopes that it has, and it doesn't have {scope}");
            Err(ApiError::new(ErrorCode::InsufficientScope, message))
        }
        None => Ok(()),
    }
}

/// The tokens of the organization, without their secrets.
#[utoipa::path(
    get, path = "/api-tokens", tag = "management", operation_id = "list_api_tokens",
    responses((status = 200, description = "The tokens, oldest first.", body = TokensAnswer), NotModified),
)]
pub(crate) async fn list(ApiCall { state, request, .. }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    NoParameters::check(&request)?;
    let tokens = state.engine.registry().tokens(caller.organization())?;
    let api_tokens = tokens.iter().map(|token| TokenAnswer::from(&**token)).collect();
    etag::json(&request, &TokensAnswer { api_tokens, truncated: false })
}

/// Makes a token. A token of role admin makes none of role owner, and gives only scopes that it has itself.
#[utoipa::path(
    post, path = "/api-tokens", tag = "management", operation_id = "create_api_token",
    request_body = NewTokenShape,
    responses(
        (status = 201, description = "The token, with its secret, which is shown this once.", body = NewTokenAnswer), ConflictErrors,
    ),
)]
pub(crate) async fn create(ApiCall { state, request, payload }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    let NewTokenShape { name, role, scopes, project_id, expires_at, member_id } = json::read(&state, &request, payload).await?;
    let new = NewToken { name, role, scopes, project: project_id, expires_at, member: member_id };
    may_make(state.engine.registry(), &caller.token, &new)?;
    let organization = caller.organization();
    let made = management::change(&state, caller.author(&state, &request), move |registry, by| {
        registry.create_token(organization, new, by)
    });
    let (token, secret) = made.await?;
    Ok(management::created(&NewTokenAnswer { token: secret.expose().to_owned(), made: (&token).into() }))
}

/// The id in the path, of a token that the caller may manage. Only owners manage tokens of owners.
fn managed_token(state: &AppState, request: &HttpRequest, caller: &Caller, doing: &str) -> Result<TokenId> {
    let not_found = || ApiError::not_found("API token");
    let id: TokenId = request.parameter("token_id").parse().map_err(|_| not_found())?;
    let registry = state.engine.registry();
    let tokens = registry.tokens(caller.organization())?;
    let token = tokens.iter().find(|token| token.token_id == id).ok_or_else(not_found)?;
    let is_of_owner = is_of_owner(registry, caller.organization(), token.role, token.member.as_ref());
    if is_of_owner && caller.token.role != Role::Owner {
        let message = format!("only a token of role owner {doing} tokens of role owner, or of members of role owner");
        return Err(ApiError::new(ErrorCode::InsufficientRole, message));
    }
    Ok(id)
}

/// Changes the name of a token, or how many requests may be sent with it, from the next request on. A token whose limit was changed may be used for a
/// whole burst at once. A token of role admin changes none of role owner.
#[utoipa::path(
    patch, path = "/api-tokens/{token_id}", tag = "management", operation_id = "update_api_token",
    params(TokenPath), request_body = TokenPatchShape,
    responses((status = 200, description = "The token as it is now.", body = TokenAnswer)),
)]
pub(crate) async fn change(ApiCall { state, request, payload }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    let TokenPatchShape { name, rate_limit, burst } = json::read(&state, &request, payload).await?;
    let id = managed_token(&state, &request, &caller, "changes")?;
    let patch = TokenPatch { name, rate_limit: RateLimitPatch { per_second: rate_limit, burst } };
    let organization = caller.organization();
    let author = caller.author(&state, &request);
    let token = management::change(&state, author, move |registry, by| registry.update_token(organization, &id, patch, by));
    Ok(HttpResponse::Ok().json(TokenAnswer::from(&*token.await?)))
}

/// Revokes a token, for good and from the next request on. A token of role admin revokes none of role owner, and the last one of role
/// owner stays.
#[utoipa::path(
    delete, path = "/api-tokens/{token_id}", tag = "management", operation_id = "revoke_api_token",
    params(TokenPath),
    responses((status = 204, description = "The token is no longer valid."), ConflictErrors),
)]
pub(crate) async fn revoke(ApiCall { state, request, .. }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    NoParameters::check(&request)?;
    let id = managed_token(&state, &request, &caller, "revokes")?;
    let organization = caller.organization();
    management::change(&state, caller.author(&state, &request), move |registry, by| registry.revoke_token(organization, &id, by))
        .await?;
    Ok(HttpResponse::NoContent().finish())
}

/// The path of the tokens.
const PATH: &str = "/api-tokens";

/// A command about API tokens.
#[derive(Debug, clap::Subcommand)]
pub enum TokenCommand {
    /// List the tokens, without their secrets, oldest first
    List,
    /// Create a token, and print its secret. The secret is shown only once
    Create {
        /// Name
        #[arg(long)]
        name: String,
        /// Role: owner, admin or member
        #[arg(long)]
        role: String,
        /// Scopes, separated by commas, such as analytics:read,revenue:read [default: all]
        #[arg(long, value_delimiter = ',')]
        scopes: Option<Vec<String>>,
        /// Limit the token to one project, by id or unique name [default: all projects]
        #[arg(long, value_name = "PROJECT")]
        project: Option<String>,
        /// Member who owns the token, by id. The lower of the two roles applies, and removing the
        /// member revokes the token
        #[arg(long, value_name = "MEMBER")]
        member: Option<String>,
        /// Time at which it expires (RFC 3339) [default: never]
        #[arg(long, value_name = "TIME")]
        expires_at: Option<String>,
    },
    /// Show a token, without its secret
    Show {
        /// Id of the token: tok_…
        token_id: String,
    },
    /// Change a token. Only the settings with a flag change
    Set {
        /// Id of the token: tok_…
        token_id: String,
        /// Name
        #[arg(long)]
        name: Option<String>,
        /// Requests per second; 0 removes the limit
        #[arg(long, value_name = "N")]
        rate_limit: Option<u32>,
        /// Burst: requests at once after a pause [default: the requests of one second]
        #[arg(long, value_name = "N")]
        burst: Option<u32>,
    },
    /// Revoke a token. The next request with it is refused
    Revoke {
        /// Id of the token: tok_…
        token_id: String,
    },
}

impl ManagementCommand for TokenCommand {
    fn send(&self, server: &ManagedServer) -> Result<Reply, Failure> {
        match self {
            Self::List => server.list(PATH, "api_tokens", &["token_id", "role", "project_id", "expires_at", "name"]),
            Self::Create { name, role, scopes, project, member, expires_at } => {
                let project = project.as_deref().map(|project| server.client.project(Some(project))).transpose()?;
                let body = Body::default()
                    .set("name", Some(name.as_str()))
                    .set("role", Some(role.as_str()))
                    .set("project_id", project.map(|id| id.to_string()))
                    .set("member_id", member.as_deref())
                    .set("expires_at", expires_at.as_deref());
                let body = match scopes {
                    Some(scopes) => body.list("scopes", Some(scopes)),
                    None => body.set("scopes", Some(all(Scope::ALL)?)),
                };
                server.create(PATH, &body)
            }
            Self::Show { token_id } => server.find(PATH, "api_tokens", "token_id", token_id),
            Self::Set { token_id, name, rate_limit, burst } => {
                let body = Body::default().set("name", name.as_deref()).set("rate_limit", *rate_limit).set("burst", *burst);
                server.change(&format!("{PATH}/{token_id}"), &body)
            }
            Self::Revoke { token_id } => server.remove(&format!("{PATH}/{token_id}"), format!("revoked {token_id}")),
        }
    }
}
