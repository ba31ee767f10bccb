//! `/api-tokens`.
//!
//! Whoever is no owner can't raise itself: a token of role admin gives others no role above its own and no scope that it
//! hasn't itself, and revokes no owner's token. An owner's token may give and revoke everything.

use actix_web::{HttpRequest, HttpResponse, web};
use headcount_actors::registry::{ApiToken, NewToken, Role, Scope, TokenId};
use headcount_domain::ids::ProjectId;
use headcount_domain::time::Instant;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::schemas;
use crate::http::AppState;
use crate::http::extract::query::{Fields, parsed};
use crate::http::openapi::{
    BodyErrors, ConflictErrors, NotFoundErrors, NotModified, RequestErrors, TokenErrors, UnavailableErrors,
};
use crate::http::respond::error::ApiError;

/// A token to be made.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "the shape for the document; the body is read field by field")]
pub struct NewTokenShape {
    /// Its name.
    #[schema(min_length = 1, max_length = 200)]
    name: String,
    /// What its holder is in the organization.
    #[schema(schema_with = schemas::role)]
    role: String,
    /// What it may be used for: at least one. None implies another.
    #[schema(schema_with = schemas::scopes)]
    scopes: Vec<String>,
    /// The one project that it is for. Default: all.
    #[schema(pattern = "^prj_[0-9A-Za-z]{11}$")]
    project_id: Option<String>,
    /// From when on it is refused; in the future. Default: never.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
}

/// A token, without its secret.
#[derive(Debug, Serialize, ToSchema)]
pub struct TokenAnswer {
    /// Its id, which is no secret.
    token_id: String,
    /// Its name.
    name: String,
    /// What its holder is in the organization.
    #[schema(schema_with = schemas::role)]
    role: Role,
    /// What it may be used for.
    #[schema(schema_with = schemas::scopes)]
    scopes: Vec<Scope>,
    /// The one project that it is for; null: all.
    #[schema(required)]
    project_id: Option<String>,
    /// When it was made.
    #[schema(format = DateTime)]
    created_at: String,
    /// From when on it is refused; null: never.
    #[schema(required, format = DateTime)]
    expires_at: Option<String>,
}

/// A token that was just made.
#[derive(Debug, Serialize, ToSchema)]
pub struct NewTokenAnswer {
    /// The secret. It is shown here once, and kept nowhere.
    token: String,
    /// Its id, which is no secret.
    token_id: String,
    /// Its name.
    name: String,
    /// What its holder is in the organization.
    #[schema(schema_with = schemas::role)]
    role: Role,
    /// What it may be used for.
    #[schema(schema_with = schemas::scopes)]
    scopes: Vec<Scope>,
    /// The one project that it is for; null: all.
    #[schema(required)]
    project_id: Option<String>,
    /// When it was made.
    #[schema(format = DateTime)]
    created_at: String,
    /// From when on it is refused; null: never.
    #[schema(required, format = DateTime)]
    expires_at: Option<String>,
}

/// The tokens of an organization.
#[derive(Debug, Serialize, ToSchema)]
pub struct TokensAnswer {
    /// The tokens, oldest first, those that have expired included.
    api_tokens: Vec<TokenAnswer>,
    /// Whether some are left out: never.
    truncated: bool,
}

/// The token that a path is about.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code, reason = "the shape for the document")]
pub struct TokenPath {
    /// The token's id.
    #[param(pattern = "^tok_[0-9A-Za-z]{16}$")]
    token_id: String,
}

impl From<&ApiToken> for TokenAnswer {
    fn from(token: &ApiToken) -> Self {
        Self {
            token_id: token.token_id.to_string(),
            name: token.name.clone(),
            role: token.role,
            scopes: token.scopes.clone(),
            project_id: token.project.map(|project| project.to_string()),
            created_at: token.created_at.to_string(),
            expires_at: token.expires_at.map(|at| at.to_string()),
        }
    }
}

impl NewTokenAnswer {
    fn new(token: &ApiToken, secret: &str) -> Self {
        let TokenAnswer { token_id, name, role, scopes, project_id, created_at, expires_at } = token.into();
        Self { token: secret.to_owned(), token_id, name, role, scopes, project_id, created_at, expires_at }
    }
}

fn new_token(body: &[u8]) -> Result<NewToken, ApiError> {
    let fields = Fields::read(body, &["name", "role", "scopes", "project_id", "expires_at"])?;
    let name = super::required(fields.text("name")?, "name")?;
    let role: String = super::required(fields.text("role")?, "role")?;
    let scopes: Vec<String> = super::required(fields.get("scopes", "a list of scopes such as [\"admin\"]")?, "scopes")?;
    let scope = |(i, scope): (usize, &String)| {
        scope.parse::<Scope>().map_err(|error| ApiError::parameter(format!("scopes[{i}]"), format!("{scope:?} {error}")))
    };
    let project = fields.text("project_id")?;
    let project = project.map(|id| parsed("project_id", &id, |id| id.parse::<ProjectId>().ok(), "the id of a project"));
    let expires_at = fields.text("expires_at")?;
    let expires_at = expires_at.map(|at| parsed("expires_at", &at, Instant::parse_rfc3339, "an RFC 3339 date and time"));
    Ok(NewToken {
        name,
        role: role.parse().map_err(|error| ApiError::parameter("role", format!("{role:?} {error}")))?,
        scopes: scopes.iter().enumerate().map(scope).collect::<Result<_, _>>()?,
        project: project.transpose()?,
        expires_at: expires_at.transpose()?,
    })
}

/// Refuses a token that is more than its maker, who is no owner.
fn may_make(caller: &ApiToken, new: &NewToken) -> Result<(), ApiError> {
    if caller.role == Role::Owner {
        return Ok(());
    }
    if new.role == Role::Owner {
        return Err(ApiError::forbidden("insufficient_role", "only a token of role owner makes tokens of role owner"));
    }
    match new.scopes.iter().find(|scope| !caller.has(**scope)) {
        Some(scope) => {
            let message = format!("a token of role admin gives only scopes that it has, and it doesn't have {scope}");
            Err(ApiError::forbidden("insufficient_scope", message))
        }
        None => Ok(()),
    }
}

/// The tokens of the organization, without their secrets.
#[utoipa::path(
    get, path = "/api-tokens", tag = "management", operation_id = "list_api_tokens",
    responses(
        (status = 200, description = "The tokens, oldest first.", body = TokensAnswer),
        NotModified, RequestErrors, TokenErrors,
    ),
    security(("api_token" = []))
)]
pub async fn list(state: web::Data<AppState>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let caller = super::caller(&state, &request)?;
    let tokens = state.engine.registry().tokens(caller.organization())?;
    let api_tokens = tokens.iter().map(|token| TokenAnswer::from(&**token)).collect();
    super::shown(&request, &TokensAnswer { api_tokens, truncated: false })
}

/// Makes a token. A token of role admin makes none of role owner, and gives only scopes that it has itself.
#[utoipa::path(
    post, path = "/api-tokens", tag = "management", operation_id = "create_api_token",
    request_body = NewTokenShape,
    responses(
        (status = 201, description = "The token, with its secret, which is shown this once.", body = NewTokenAnswer),
        RequestErrors, TokenErrors, ConflictErrors, BodyErrors, UnavailableErrors,
    ),
    security(("api_token" = []))
)]
pub async fn create(state: web::Data<AppState>, request: HttpRequest, payload: web::Payload) -> Result<HttpResponse, ApiError> {
    let caller = super::caller(&state, &request)?;
    let new = new_token(&super::json_body(&request, payload).await?)?;
    may_make(&caller.token, &new)?;
    let organization = caller.organization();
    let made = super::change(&state, move |registry, now| registry.create_token(organization, new, now));
    let (token, secret) = made.await?;
    Ok(super::created(&NewTokenAnswer::new(&token, secret.expose())))
}

/// Revokes a token, for good and from the next request on. A token of role admin revokes none of role owner, and the last one of role
/// owner stays.
#[utoipa::path(
    delete, path = "/api-tokens/{token_id}", tag = "management", operation_id = "revoke_api_token",
    params(TokenPath),
    responses(
        (status = 204, description = "The token is no longer valid."),
        RequestErrors, TokenErrors, NotFoundErrors, ConflictErrors, UnavailableErrors,
    ),
    security(("api_token" = []))
)]
pub async fn revoke(state: web::Data<AppState>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let caller = super::caller(&state, &request)?;
    let not_found = || ApiError::not_found("API token");
    let id: TokenId = request.match_info().query("token_id").parse().map_err(|_| not_found())?;
    let organization = caller.organization();
    let tokens = state.engine.registry().tokens(organization)?;
    let token = tokens.iter().find(|token| token.token_id == id).ok_or_else(not_found)?;
    if token.role == Role::Owner && caller.token.role != Role::Owner {
        return Err(ApiError::forbidden("insufficient_role", "only a token of role owner revokes tokens of role owner"));
    }
    super::change(&state, move |registry, now| registry.revoke_token(organization, &id, now)).await?;
    Ok(HttpResponse::NoContent().finish())
}
