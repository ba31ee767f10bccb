//! `/session`: signs browsers in and out. The page holds no token: its cookie stands for one, and
//! no script can read it.

use std::process::ExitCode;
use std::sync::Arc;

use actix_web::http::header::{self, HeaderValue};
use headcount_actors::Engine;
use headcount_api::command::{Client, CommandSettings, Failure, ServerFlags, describe_sign_in, is_held, print};
use headcount_api::endpoint::*;
use headcount_api::extract::auth::Credential;
use headcount_api::extract::cookie;
use headcount_api::openapi::schemas;
use headcount_api::{management, rate_limit};
use headcount_control::{
    ApiToken, BrowserSession, Principal, Project, Registry, Role, Scope, Secret, ShareHolder, SignInError, TokenHolder,
};
use headcount_domain::{Day, Instant};
use serde::{Deserialize, Serialize};

use crate::sign_in_limit::SignInLimit;

/// The largest body of a sign-in, which anybody may send.
const SIGN_IN_LIMIT_BYTES: usize = 4 << 10;

json_body! {
    /// What a browser signs in with. Exactly one of `token`, `code` and `share` is given.
    #[schema(example = json!({"token": "sk_0123456789abcdefghijklmnopqrstuv"}))]
    pub(crate) struct SignInShape {
        /// An API token.
        #[schema(pattern = "^sk_[0-9A-Za-z]{32}$")]
        token: Option<String> = optional("a string"),
        /// A code, as `headcount login` and `POST /session/codes` make them. It is used up.
        #[schema(pattern = "^lc_[0-9A-Za-z]{32}$")]
        code: Option<String> = optional("a string"),
        /// The secret of a share, which is in its URL.
        #[schema(pattern = "^sh_[0-9A-Za-z]{32}$")]
        share: Option<String> = optional("a string"),
        /// Whether a browser that is signed in by another token is signed out. Default: false.
        replace: Option<bool> = optional("true or false"),
    }
}

/// Who is signed in, and what the page can show.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionAnswer {
    /// The role in the organization.
    #[schema(schema_with = schemas::role)]
    role: Role,
    /// What may be read and changed.
    #[schema(schema_with = schemas::scopes)]
    scopes: Vec<Scope>,
    /// The projects: all of the organization, or the one that the token or the share is for.
    projects: Vec<SessionProject>,
    /// Whether it is a share: figures of one project, of no people and no companies.
    share: bool,
    /// The timezone of the days.
    timezone: String,
    /// When it ends by itself; null: never.
    #[schema(required)]
    expires_at: Option<Timestamp>,
}

answer! {
    /// A project that can be shown.
    pub(crate) struct SessionProject from |project: &Project, floor: Option<Day>| {
        /// Its id.
        project_id: String = project.id.to_string(),
        /// Its name.
        name: String = project.name.clone(),
        /// Its currency.
        currency: String = project.currency.to_string(),
        /// For how many days events are kept, today included; null: for ever.
        #[schema(required)]
        retention_days: Option<u32> = project.retention_days,
        /// The first day of which events are kept; null: all days. It never falls.
        #[schema(required, value_type = Option<String>, format = Date)]
        retention_floor: Option<String> = floor.map(|floor| floor.to_string()),
    }
}

/// A code that signs a browser in.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CodeAnswer {
    /// The code. It works once.
    code: String,
    /// The address that signs a browser in with it. What is after `#` is in no log of a server.
    url: String,
    /// From when on it is refused.
    expires_at: Timestamp,
}

/// Signs a browser in: the answer gives it a cookie, which stands for the token for 14 days, or until the token ends.
///
/// A browser that is signed in by another token stays so, unless `replace` is true: any page can have a browser open an address with a code. It should ask its user
/// first. A code works once. The cookie of a share stands for the share. An address has 5 tries a second. The cookie counts wherever an API token does, but only
/// in requests of the page itself: by `Sec-Fetch-Site: same-origin`, or, where browsers leave that out, by the `Origin` or, in reads, the `Referer`. It is
/// `__Host-headcount` over https, and `headcount` over plain http.
#[utoipa::path(
    post, path = "/session", tag = "sign-in", operation_id = "sign_in",
    request_body = SignInShape,
    responses(
        (status = 204, description = "The browser is signed in.", headers(("set-cookie" = String, description = "The cookie."))),
        SignInErrors, ConflictErrors,
    ),
    security(())
)]
pub(crate) async fn sign_in(ApiCall { state, request, payload }: ApiCall) -> Result<HttpResponse> {
    NoParameters::check(&request)?;
    if cookie::is_of_other_site(&state, &request) {
        return Err(ApiError::new(ErrorCode::CrossSite, "a page of another site can't sign in here"));
    }
    if !state.of::<SignInLimit>()?.take(state.client_address(&request), rate_limit::now()) {
        state.request_metrics.count_rate_limited();
        return Err(ApiError::rate_limited("too many sign-ins from this address within a second", 1));
    }
    let shape: SignInShape = json::read_within(&state, &request, payload, SIGN_IN_LIMIT_BYTES).await?;
    let former = former(&state, &request);
    if let Some(former) = former.as_ref().filter(|_| shape.replace != Some(true)) {
        check_same(&state, former, &shape).await?;
    }
    let secret = begin(&state, shape).await?;
    if let Some(former) = former {
        end(&state, former).await?;
    }
    Ok(with_cookie(&cookie::set(state.is_https(&request), &secret)))
}

/// Checks that a sign-in is by the token that a browser is signed in with. What would be refused anyway is refused later.
async fn check_same(state: &AppState, former: &BrowserSession, shape: &SignInShape) -> Result<()> {
    let (registry, now) = (state.engine.registry(), state.engine.clock().now());
    let new = match shape {
        SignInShape { token: Some(secret), .. } | SignInShape { share: Some(secret), .. } => match registry
            .authenticate(secret, now)
        {
            Ok(Principal::Token(TokenHolder { token, .. }) | Principal::Share(ShareHolder { rights: token, .. })) => Some(token),
            Ok(Principal::Root(_)) | Err(_) => None,
        },
        SignInShape { code: Some(code), .. } => {
            let code = code.clone();
            management::on_engine(state, move |engine| engine.registry().token_of_code(&code, now)).await?
        }
        _ => None,
    };
    let Some(new) = new.filter(|new| new.token_id != former.token) else { return Ok(()) };
    let name = |id| Ok::<_, ApiError>(registry.organization(id)?.name.clone());
    let (mine, other) = (name(former.organization)?, name(new.organization)?);
    let message = format!("this browser is signed in to {mine:?}; it would be signed in to {other:?} as {} instead", new.role);
    Err(ApiError::new(ErrorCode::SignedIn, message))
}

/// Checks what a browser signs in with, and returns the value of its cookie.
async fn begin(state: &AppState, shape: SignInShape) -> Result<String> {
    let now = state.engine.clock().now();
    match shape {
        SignInShape { token: Some(token), code: None, share: None, .. } => {
            begin_session(state, "token", move |registry| registry.begin_session(&token, now)).await
        }
        SignInShape { token: None, code: Some(code), share: None, .. } => {
            begin_session(state, "code", move |registry| registry.begin_session_by_code(&code, now)).await
        }
        // Whoever has a share has its link anyway, so that its cookie is the share itself: readers
        // cost no memory and no disk.
        SignInShape { token: None, code: None, share: Some(share), .. } => match state.engine.registry().share_of(&share, now) {
            Ok(_) => Ok(share),
            Err(_) => Err(refused("share")),
        },
        SignInShape { token: None, code: None, share: None, .. } => {
            Err(ApiError::new(ErrorCode::MissingParameter, "one of `token`, `code` and `share` is required").with_param("token"))
        }
        _ => Err(ApiError::parameter("token", "only one of `token`, `code` and `share` may be given")),
    }
}

fn refused(what: &str) -> ApiError {
    ApiError::unauthenticated(format!("the {what} is unknown, used, revoked or expired"))
}

async fn begin_session(
    state: &AppState,
    what: &str,
    begin: impl FnOnce(&Registry) -> Result<(BrowserSession, Secret), SignInError> + Send + 'static,
) -> Result<String> {
    let begun = management::on_engine(state, move |engine| match begin(engine.registry()) {
        Ok((_, secret)) => Ok(Some(secret)),
        Err(SignInError::Refused) => Ok(None),
        Err(SignInError::Registry(error)) => Err(error),
    });
    Ok(begun.await?.ok_or_else(|| refused(what))?.expose().to_owned())
}

/// The session of a request's cookie, if it counts.
fn former(state: &AppState, request: &HttpRequest) -> Option<Arc<BrowserSession>> {
    match Credential::of(state, request) {
        Ok(Credential::Cookie(cookie)) => state.engine.registry().session(&cookie, state.engine.clock().now()),
        Ok(Credential::Bearer(_)) | Err(_) => None,
    }
}

async fn end(state: &AppState, session: Arc<BrowserSession>) -> Result<()> {
    management::on_engine(state, move |engine| engine.registry().end_session(&session)).await
}

fn with_cookie(cookie: &str) -> HttpResponse {
    let mut response = HttpResponse::NoContent();
    response.insert_header((header::SET_COOKIE, cookie));
    response.insert_header((header::CACHE_CONTROL, HeaderValue::from_static("no-store"))).finish()
}

/// Who is signed in: by the cookie of the page, or by the token or share that is sent.
#[utoipa::path(
    get, path = "/session", tag = "sign-in", operation_id = "show_session",
    responses(
        (status = 200, description = "The rights, and the projects.", body = SessionAnswer, example = json!({
            "role": "owner", "scopes": ["analytics:read", "revenue:read"],
            "projects": [{
                "project_id": "prj_0123456789A", "name": "Shop", "currency": "EUR",
                "retention_days": 400, "retention_floor": "2023-01-26"
            }],
            "share": false, "timezone": "Europe/Zurich", "expires_at": "2024-03-15T09:30:00.000Z"
        })),
        NotModified, UnavailableErrors,
    ),
)]
pub(crate) async fn show(ApiCall { state, request, .. }: ApiCall) -> Result<HttpResponse> {
    let Caller { token, share, .. } = auth::anybody(&state, &request)?;
    NoParameters::check(&request)?;
    let registry = state.engine.registry();
    let organization = registry.organization(token.organization)?;
    let session = former(&state, &request).map(|session| session.expires_at());
    let answer = SessionAnswer {
        role: token.role,
        scopes: token.scopes.clone(),
        projects: projects(&state, &token).await?,
        share: share.is_some(),
        timezone: organization.timezone.name().to_owned(),
        expires_at: earlier(session, token.expires_at).map(Timestamp::from),
    };
    etag::json(&request, &answer)
}

/// The projects that a token can show, oldest first.
async fn projects(state: &AppState, token: &ApiToken) -> Result<Vec<SessionProject>> {
    let mut projects = state.engine.registry().projects(token.organization)?;
    projects.retain(|project| token.project.is_none_or(|own| own == project.id));
    let ids: Vec<_> = projects.iter().map(|project| project.id).collect();
    let floors = state.engine.floors(token.organization, &ids).await?;
    Ok(projects.iter().zip(floors).map(|(project, floor)| SessionProject::new(project, floor)).collect())
}

fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    one.into_iter().chain(other).min()
}

/// Signs the browser out: its cookie is worth nothing from the next request on, and its streams end.
#[utoipa::path(
    delete, path = "/session", tag = "sign-in", operation_id = "sign_out",
    responses(
        (status = 204, description = "The browser is signed out.", headers(("set-cookie" = String, description = "Removes the cookie."))),
    ),
    security(("session" = []))
)]
pub(crate) async fn sign_out(ApiCall { state, request, .. }: ApiCall) -> Result<HttpResponse> {
    let credential = Credential::of(&state, &request)?;
    NoParameters::check(&request)?;
    if let Credential::Bearer(_) = credential {
        return Err(ApiError::unauthenticated("the request has no cookie, so that there is no session to end"));
    }
    if let Some(session) = former(&state, &request) {
        end(&state, session).await?;
    }
    Ok(with_cookie(&cookie::clear(state.is_https(&request))))
}

/// Makes a code that signs one browser in as the token that the request is sent with: within 5 minutes, and before the server stops. A token has 10
/// such codes and an organization 100; one more ends the oldest, of the same token if there is one.
#[utoipa::path(
    post, path = "/session/codes", tag = "sign-in", operation_id = "create_sign_in_code",
    responses(
        (status = 201, description = "The code, which is shown this once.", body = CodeAnswer, example = json!({
            "code": "lc_0123456789abcdefghijklmnopqrstuv",
            "url": "https://stats.example/#code=lc_0123456789abcdefghijklmnopqrstuv",
            "expires_at": "2024-03-01T09:35:00.000Z"
        })), BodyErrors,
    ),
    security(("api_token" = []))
)]
pub(crate) async fn create_code(ApiCall { state, request, payload }: ApiCall) -> Result<HttpResponse> {
    let caller = auth::token_holder(&state, &request)?;
    let EmptyBody = json::read_within(&state, &request, payload, SIGN_IN_LIMIT_BYTES).await?;
    let base = state.base_url(&request)?;
    let (organization, token, now) = (caller.organization(), caller.token.token_id.clone(), state.engine.clock().now());
    let create = move |engine: &Engine| engine.registry().create_sign_in_code(organization, &token, now);
    let (code, expires_at) = management::on_engine(&state, create).await?;
    let code = code.expose().to_owned();
    let url = format!("{base}/#code={code}");
    Ok(management::created(&CodeAnswer { code, url, expires_at: expires_at.into() }))
}

/// The flags of `login`.
#[derive(Debug, clap::Args)]
pub struct LoginArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerFlags,
}

/// The answer of `POST /session/codes`.
#[derive(Debug, Serialize, Deserialize)]
struct SignIn {
    code: String,
    url: String,
    expires_at: String,
}

/// Runs the command. A server must run, since it keeps the code in memory.
pub fn login(settings: &dyn CommandSettings, args: &LoginArgs) -> Result<ExitCode, Failure> {
    if args.server.url.is_none() && !is_held(settings.data_dir())? {
        return Err(Failure(format!("no server runs on {}: `headcount serve` starts one", settings.data_dir().display())));
    }
    let sign_in: SignIn = Client::new(&args.server, &settings.server_place())?.post_once("/session/codes", b"{}")?;
    print(args.json, &sign_in, || describe_sign_in(&sign_in.url))?;
    Ok(ExitCode::SUCCESS)
}
