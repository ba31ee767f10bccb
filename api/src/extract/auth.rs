//! Authentication and authorization of tokens, cookies, shares and public keys: decides 401 and
//! 403. Allowed origins are checked in `features/events/src/cors.rs`; what a token may grant to
//! another, in `features/organization/src/api_tokens.rs`.

use std::sync::Arc;

use actix_web::http::header;
use headcount_control::{
    Actor, ActorKind, ApiToken, AuthError, Author, Authority, Capability, Limiter, Principal, ProjectConfig, Registry, Role,
    Scope, Share, ShareHolder, TokenHolder,
};
use headcount_domain::{Instant, OrganizationId, ProjectId, Timezone};

use crate::app::AppState;
use crate::extract::cookie;
use crate::extract::share_rules::{self, SharedQuestion};
use crate::extract::standing::LetIn;
use crate::rate_limit::{self, TokenLimiter};
use crate::request::HttpRequest;

use crate::respond::code::ErrorCode;
use crate::respond::error::{ApiError, Result};

/// The minimum role for an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MinRole {
    /// Any member.
    Member,
    /// Owners and admins.
    Admin,
}

/// An authorized caller.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The token; of the reader of a share, what the share allows.
    pub token: Arc<ApiToken>,
    /// The share, if the caller is a reader of one.
    pub share: Option<Arc<Share>>,
    kind: ActorKind,
    authority: Authority,
}

impl Caller {
    /// The author of the changes that the request makes.
    pub fn author(&self, state: &AppState, request: &HttpRequest) -> Author {
        // The token of a command exists only for it.
        let token_id = (self.kind == ActorKind::Token).then(|| self.token.token_id.clone());
        let actor = Actor { kind: self.kind, token_id, member_id: self.token.member.clone() };
        let authority = Some(self.authority.clone());
        Author { at: state.engine.clock().now(), actor, request_id: request_id(request), authority }
    }

    /// Checks that the caller's token is for the whole organization.
    pub fn check_organization_wide(&self) -> Result<()> {
        match self.token.project {
            None => Ok(()),
            Some(_) => Err(ApiError::new(
                ErrorCode::ProjectForbidden,
                "this is about the whole organization, and the token is for one project only",
            )),
        }
    }

    /// The caller's organization.
    pub fn organization(&self) -> OrganizationId {
        self.token.organization
    }
}

/// An authorized caller, and the project in the path.
#[derive(Debug, Clone)]
pub struct ProjectCaller {
    /// The project.
    pub project: ProjectId,
    /// Its settings.
    pub config: Arc<ProjectConfig>,
    /// The caller.
    pub caller: Caller,
}

impl ProjectCaller {
    /// Checks that the caller may see money.
    pub fn check_money(&self) -> Result<()> {
        allowed(&self.caller.token, Scope::RevenueRead, MinRole::Admin)
    }
}

/// A caller whose question is not known yet. It may be the reader of a share, who may not ask everything.
pub struct Asker(ProjectCaller);

impl Asker {
    /// The timezone of the project's days.
    pub fn timezone(&self) -> Timezone {
        self.0.config.policy.timezone
    }

    /// Returns the caller, who may ask this question.
    pub fn asks(self, question: &impl SharedQuestion) -> Result<ProjectCaller> {
        if self.0.caller.share.is_some() {
            share_rules::check_fields(question)?;
        }
        Ok(self.0)
    }

    /// Whether the caller is no reader of a share.
    pub fn sees_all(&self) -> bool {
        self.0.caller.share.is_none()
    }

    /// Returns the kept questions whose fields the caller may name.
    pub fn list<Q: SharedQuestion>(&self, kept: impl FnOnce(&ProjectCaller) -> Result<Vec<Arc<Q>>>) -> Result<Vec<Arc<Q>>> {
        let mut list = kept(&self.0)?;
        if !self.sees_all() {
            list.retain(|question| share_rules::check_fields(&**question).is_ok());
        }
        Ok(list)
    }
}

/// How a caller says who it is.
#[derive(Clone)]
pub enum Credential {
    /// What is after `Authorization: Bearer`.
    Bearer(Box<str>),
    /// The cookie of the page, in a request of the page.
    Cookie(Box<str>),
}

impl Credential {
    /// Reads the one credential of a request.
    pub fn of(state: &AppState, request: &HttpRequest) -> Result<Self> {
        match cookie::find(state, request)? {
            Some(cookie) if !request.headers().contains_key(header::AUTHORIZATION) => {
                if cookie::is_of_page(state, request) {
                    return Ok(Self::Cookie(cookie.into()));
                }
                Err(ApiError::unauthenticated("the cookie counts only in requests that the page itself sends"))
            }
            _ => bearer(state, request).map(|bearer| Self::Bearer(bearer.into())),
        }
    }

    /// Returns whose credential it is.
    fn principal(&self, registry: &Registry, now: Instant) -> Result<Principal, AuthError> {
        match self {
            Self::Bearer(bearer) => registry.authenticate(bearer, now),
            Self::Cookie(cookie) => registry.authenticate_cookie(cookie, now),
        }
    }
}

/// Returns the bearer credential of a request, which has no cookie beside it.
fn bearer<'r>(state: &AppState, request: &'r HttpRequest) -> Result<&'r str> {
    let mut values = request.headers().get_all(header::AUTHORIZATION);
    let value = values.next();
    if values.next().is_some() {
        let message = "there are several `Authorization` headers; a request has one credential";
        return Err(ApiError::new(ErrorCode::DuplicateCredentials, message));
    }
    let value = value.ok_or_else(|| ApiError::unauthenticated("an `Authorization: Bearer <token>` header is required"))?;
    if cookie::find(state, request)?.is_some() {
        let message = "there are an `Authorization` header and a cookie of the page; a request has one credential";
        return Err(ApiError::new(ErrorCode::DuplicateCredentials, message));
    }
    let text = value.to_str().unwrap_or_default();
    match text.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Ok(token.trim()),
        _ => Err(ApiError::unauthenticated("the `Authorization` header must be `Bearer <token>`")),
    }
}

/// Returns the holder of a token, of a session or of a share, whatever it may do.
pub fn anybody(state: &AppState, request: &HttpRequest) -> Result<Caller> {
    let caller = authenticated(state, request)?;
    LetIn { organization: caller.organization(), authority: caller.authority.clone() }.note(request);
    Ok(caller)
}

fn authenticated(state: &AppState, request: &HttpRequest) -> Result<Caller> {
    let credential = Credential::of(state, request)?;
    let (authority, token, share, kind, limiter) = match credential.principal(state.engine.registry(), state.engine.clock().now())
    {
        Ok(Principal::Token(holder)) => (holder.authority(), holder.token, None, holder.kind, holder.limiter),
        Ok(Principal::Share(holder)) => {
            (holder.authority(), holder.rights, Some(holder.share), ActorKind::Token, Some(holder.limiter))
        }
        // The root token creates organizations, and is unknown to every other operation.
        Ok(Principal::Root(_)) | Err(_) => return Err(unknown(&credential)),
    };
    limiter.map_or(Ok(()), |limiter| spend(state, request, limiter))?;
    Ok(Caller { token, share, kind, authority })
}

fn unknown(credential: &Credential) -> ApiError {
    ApiError::unauthenticated(match credential {
        Credential::Bearer(_) => "the token is unknown, revoked or expired",
        Credential::Cookie(_) => "the session has ended, or its token or share is no longer valid",
    })
}

/// Returns the caller of an operation that readers of shares may not use.
fn token(state: &AppState, request: &HttpRequest) -> Result<Caller> {
    let caller = anybody(state, request)?;
    if caller.share.is_some() { Err(share_rules::not_for_shares()) } else { Ok(caller) }
}

/// Returns the holder of a token that is in the header `Authorization`, whatever it may do.
pub fn token_holder(state: &AppState, request: &HttpRequest) -> Result<Caller> {
    bearer(state, request)?;
    token(state, request)
}

/// Takes a request from the limit of its token, once, however many checks the operation makes.
fn spend(state: &AppState, request: &HttpRequest, limiter: Arc<Limiter>) -> Result<()> {
    if request.extensions().contains::<TokenLimiter>() {
        return Ok(());
    }
    let taken = limiter.take(rate_limit::now(), 1);
    // The dispatcher reports what is left.
    request.extensions_mut().insert(TokenLimiter(limiter));
    rate_limit::counted(state, taken)
}

fn request_id(request: &HttpRequest) -> Option<String> {
    Some(request.id().as_str().to_owned())
}

fn allowed(token: &ApiToken, scope: Scope, role: MinRole) -> Result<()> {
    if role == MinRole::Admin && token.role == Role::Member {
        return Err(ApiError::new(ErrorCode::InsufficientRole, "this needs the role owner or admin; the token's is member"));
    }
    if !token.has(scope) {
        return Err(ApiError::new(
            ErrorCode::InsufficientScope,
            format!("this needs the scope {scope}, which the token doesn't have"),
        ));
    }
    Ok(())
}

/// Authorizes an operation on the whole organization.
pub fn organization_wide(state: &AppState, request: &HttpRequest, scope: Scope, role: MinRole) -> Result<Caller> {
    let caller = token(state, request)?;
    allowed(&caller.token, scope, role)?;
    caller.check_organization_wide()?;
    Ok(caller)
}

/// Checks that the caller's organization has a capability.
pub fn capable(state: &AppState, caller: &Caller, capability: Capability) -> Result<()> {
    if state.engine.registry().organization(caller.organization())?.capabilities.contains(&capability) {
        return Ok(());
    }
    let message = format!("this needs the capability {capability}, which the organization doesn't have");
    Err(ApiError::new(ErrorCode::CapabilityRequired, message))
}

/// Authorizes an operation on `/projects/{project_id}/…`.
pub fn on_project(state: &AppState, request: &HttpRequest, scope: Scope, role: MinRole) -> Result<ProjectCaller> {
    in_project(state, request, token(state, request)?, (scope, role))
}

/// Authorizes a question about `/projects/{project_id}/…` that readers of shares may ask, too. Only [`Asker::asks`] says which project it is.
pub fn asker(state: &AppState, request: &HttpRequest, scope: Scope, role: MinRole) -> Result<Asker> {
    let caller = anybody(state, request)?;
    if let Some(share) = &caller.share {
        share_rules::check_scope(share, scope)?;
    }
    in_project(state, request, caller, (scope, role)).map(Asker)
}

fn in_project(state: &AppState, request: &HttpRequest, caller: Caller, (scope, role): (Scope, MinRole)) -> Result<ProjectCaller> {
    let token = &caller.token;
    allowed(token, scope, role)?;
    let not_found = || ApiError::not_found("project");
    let project: ProjectId = request.parameter("project_id").parse().map_err(|_| not_found())?;
    let config = state.engine.registry().policy(project).ok_or_else(not_found)?;
    if config.policy.organization != token.organization {
        return Err(not_found());
    }
    if token.project.is_some_and(|own| own != project) {
        return Err(ApiError::new(ErrorCode::ProjectForbidden, "the token is for another project"));
    }
    Ok(ProjectCaller { project, config, caller })
}

/// Whether a project exists for the sender of a request: one with a valid credential of its organization. Takes nothing from a limit.
pub fn is_visible(state: &AppState, request: &HttpRequest, project: ProjectId) -> bool {
    let Some(organization) = organization_of(state, request) else { return false };
    state.engine.registry().policy(project).is_some_and(|config| config.policy.organization == organization)
}

/// Returns the organization of the sender of a request: of one with a valid credential. Takes nothing from a limit.
pub(crate) fn organization_of(state: &AppState, request: &HttpRequest) -> Option<OrganizationId> {
    let (registry, now) = (state.engine.registry(), state.engine.clock().now());
    match Credential::of(state, request).ok()?.principal(registry, now).ok()? {
        Principal::Token(TokenHolder { token, .. }) | Principal::Share(ShareHolder { rights: token, .. }) => {
            Some(token.organization)
        }
        Principal::Root(_) => None,
    }
}

/// Whether a caller that has begun to read a project's stream, with or without money, may go on.
pub fn may_go_on(state: &Registry, credential: &Credential, project: ProjectId, has_money: bool, now: Instant) -> bool {
    let token = match credential.principal(state, now) {
        Ok(Principal::Token(TokenHolder { token, .. }) | Principal::Share(ShareHolder { rights: token, .. })) => token,
        Ok(Principal::Root(_)) | Err(_) => return false,
    };
    let is_allowed = allowed(&token, Scope::AnalyticsRead, MinRole::Member).is_ok()
        && (!has_money || allowed(&token, Scope::RevenueRead, MinRole::Admin).is_ok());
    is_allowed && token.project.is_none_or(|own| own == project)
}

/// Authorizes an operation of `/admin/*`, which is about the whole data directory and needs the operator token.
pub fn operator(state: &AppState, request: &HttpRequest) -> Result<()> {
    let bearer = bearer(state, request)?;
    if state.operator.as_ref().is_some_and(|operator| operator.is(bearer)) {
        return Ok(());
    }
    match state.engine.registry().authenticate(bearer, state.engine.clock().now()) {
        Ok(_) => Err(ApiError::new(
            ErrorCode::OperatorRequired,
            "this needs the operator token, which is in the file `operator-token` of the data directory",
        )),
        Err(_) => Err(ApiError::unauthenticated("the token is unknown, revoked or expired")),
    }
}

/// Authorizes the creation of organizations, which needs the root token.
pub fn root(state: &AppState, request: &HttpRequest) -> Result<Author> {
    let now = state.engine.clock().now();
    match state.engine.registry().authenticate(bearer(state, request)?, now) {
        Ok(Principal::Root(kind)) => {
            Ok(Author { at: now, actor: Actor::of(kind), request_id: request_id(request), authority: None })
        }
        Ok(Principal::Token(_) | Principal::Share(_)) => {
            Err(ApiError::new(ErrorCode::InsufficientRole, "this needs the root token"))
        }
        Err(_) => Err(ApiError::unauthenticated("the token is unknown, revoked or expired")),
    }
}
