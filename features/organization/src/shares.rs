//! `/projects/{project_id}/shares`: links that show the figures of a project to whoever has them.

use headcount_api::command::{Body, Failure, ManagedServer, ManagementCommand, Reply};
use headcount_api::endpoint::*;
use headcount_api::management;
use headcount_api::page_policy::SHARE_PATH;
use headcount_control::{ApiToken, NewShare, Role, Scope, Share, ShareId};
use headcount_domain::Instant;

json_body! {
    /// A share to be made.
    #[schema(example = json!({
        "name": "For investors", "expires_at": "2030-01-01T00:00:00Z", "revenue": true, "embed_origins": ["https://intranet.example"]
    }))]
    pub(crate) struct NewShareShape {
        /// Its name.
        #[schema(min_length = 1, max_length = 200)]
        name: String = required("a string"),
        /// From when on it is refused; in the future. Default: never.
        #[schema(format = DateTime, value_type = Option<String>)]
        expires_at: Option<Instant> = with(expires_at),
        /// Whether it shows money. Default: false.
        revenue: Option<bool> = optional("true or false"),
        /// The web origins whose pages may show it in a frame, at most 20. Default: none.
        #[schema(max_items = 20)]
        embed_origins: Option<Vec<String>> = optional("a list of origins such as [\"https://example.com\"]"),
    }
}

answer! {
    /// A share, without its secret.
    pub(crate) struct ShareAnswer from |share: &Share| {
        /// Its id, which is not secret.
        share_id: String = share.id.to_string(),
        /// The project that it shows.
        project_id: String = share.project.to_string(),
        /// Its name.
        name: String = share.name.clone(),
        /// Whether it shows money.
        revenue: bool,
        /// The web origins whose pages may show it in a frame.
        embed_origins: Vec<String> = share.embed_origins.clone(),
        /// When it was made.
        created_at: Timestamp,
        /// From when on it is refused; null: never.
        #[schema(required)]
        expires_at: Option<Timestamp> = share.expires_at.map(Into::into),
    }
}

/// A share that was just made.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NewShareAnswer {
    /// The link. It has the secret, is shown here once, and is kept nowhere. What is after `#` is in no log of a server.
    url: String,
    /// Its id, which is not secret.
    share_id: String,
    /// The project that it shows.
    project_id: String,
    /// Its name.
    name: String,
    /// Whether it shows money.
    revenue: bool,
    /// The web origins whose pages may show it in a frame.
    embed_origins: Vec<String>,
    /// When it was made.
    created_at: Timestamp,
    /// From when on it is refused; null: never.
    #[schema(required)]
    expires_at: Option<Timestamp>,
}

/// The shares of a project.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SharesAnswer {
    /// The shares, oldest first, those that have expired included.
    shares: Vec<ShareAnswer>,
    /// Whether some are left out: never.
    truncated: bool,
}

impl NewShareAnswer {
    fn new(share: &Share, url: String) -> Self {
        let ShareAnswer { share_id, project_id, name, revenue, embed_origins, created_at, expires_at } = share.into();
        Self { url, share_id, project_id, name, revenue, embed_origins, created_at, expires_at }
    }
}

fn expires_at(fields: &Fields<'_>, name: &str) -> Result<Option<Instant>> {
    fields.parsed(name, "an RFC 3339 date and time", Instant::parse_rfc3339)
}

/// Refuses a share that shows what its maker can't see, unless the maker is an owner, who may give everything.
fn may_make(maker: &ApiToken, revenue: bool) -> Result<()> {
    let needed = [Scope::AnalyticsRead].into_iter().chain(revenue.then_some(Scope::RevenueRead));
    match needed.into_iter().find(|scope| maker.role != Role::Owner && !maker.has(*scope)) {
        Some(scope) => {
            let message = format!("a token of role admin shares only what it sees, and it doesn't have the scope {scope}");
            Err(ApiError::new(ErrorCode::InsufficientScope, message))
        }
        None => Ok(()),
    }
}

/// The shares of a project, without their secrets.
#[utoipa::path(
    get, path = "/projects/{project_id}/shares", tag = "sign-in", operation_id = "list_shares",
    params(ProjectPath),
    responses((status = 200, description = "The shares, oldest first.", body = SharesAnswer), NotModified),
)]
pub(crate) async fn list(ApiCall { state, request, .. }: ApiCall, caller: ProjectCaller) -> Result<HttpResponse> {
    let (organization, project, _) = management::of_project(&state, &request, &caller)?;
    let shares = state.engine.registry().shares(organization, project)?;
    let shares = shares.iter().map(|share| ShareAnswer::from(&**share)).collect();
    etag::json(&request, &SharesAnswer { shares, truncated: false })
}

/// Makes a share: a link that shows the figures of the project to whoever has it, and nothing else. It shows no people and no companies: not their lists,
/// no metadata, no `user_id` and no `group_id`; money only with `revenue`. All readers of a share together may send 100 requests a second.
#[utoipa::path(
    post, path = "/projects/{project_id}/shares", tag = "sign-in", operation_id = "create_share",
    params(ProjectPath), request_body = NewShareShape,
    responses(
        (status = 201, description = "The share, with its link, which is shown this once.", body = NewShareAnswer, example = json!({
            "url": "https://stats.example/ui/share/shr_0123456789abcdef#share=sh_0123456789abcdefghijklmnopqrstuv",
            "share_id": "shr_0123456789abcdef", "project_id": "prj_0123456789A", "name": "For investors", "revenue": true,
            "embed_origins": ["https://intranet.example"], "created_at": "2024-03-01T09:30:00.000Z",
            "expires_at": "2030-01-01T00:00:00.000Z"
        })), ConflictErrors,
    ),
)]
pub(crate) async fn create(ApiCall { state, request, payload }: ApiCall, caller: ProjectCaller) -> Result<HttpResponse> {
    let NewShareShape { name, expires_at, revenue, embed_origins } = json::read(&state, &request, payload).await?;
    let revenue = revenue.unwrap_or(false);
    may_make(&caller.caller.token, revenue)?;
    let base = state.base_url(&request)?;
    let new = NewShare { name, expires_at, revenue, embed_origins: embed_origins.unwrap_or_default() };
    let (organization, project) = (caller.caller.organization(), caller.project);
    let made = management::change(&state, caller.caller.author(&state, &request), move |registry, by| {
        registry.create_share(organization, project, new, by)
    });
    let (share, secret) = made.await?;
    let url = format!("{base}{SHARE_PATH}{}#share={}", share.id, secret.expose());
    Ok(management::created(&NewShareAnswer::new(&share, url)))
}

/// Revokes a share, for good and from the next request on. The streams of its readers end.
#[utoipa::path(
    delete, path = "/projects/{project_id}/shares/{share_id}", tag = "sign-in", operation_id = "revoke_share",
    params(ProjectPath, SharePath),
    responses((status = 204, description = "The share is no longer valid.")),
)]
pub(crate) async fn revoke(ApiCall { state, request, .. }: ApiCall, caller: ProjectCaller) -> Result<HttpResponse> {
    let (organization, project, author) = management::of_project(&state, &request, &caller)?;
    let id: ShareId = request.parameter("share_id").parse().map_err(|_| ApiError::not_found("share"))?;
    management::change(&state, author, move |registry, by| registry.revoke_share(organization, project, &id, by)).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// The project of a command about shares.
#[derive(Debug, clap::Args)]
pub struct ShareArgs {
    /// Project, by id or unique name [default: the only one]
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,
}

/// A command about the shares of a project.
#[derive(Debug, clap::Subcommand)]
#[expect(missing_docs, reason = "doc comments of flags are the help that users see")]
pub enum ShareCommand {
    /// List the shares, oldest first
    List {
        #[command(flatten)]
        of: ShareArgs,
    },
    /// Create a share: a link that shows figures of the project. The link is printed only once
    Create {
        /// Name
        name: String,
        /// Include revenue
        #[arg(long)]
        revenue: bool,
        /// Time at which it expires, such as 2030-01-01T00:00:00Z
        #[arg(long, value_name = "TIME")]
        expires_at: Option<String>,
        /// Web origins whose pages may embed it in a frame, as a comma-separated list
        #[arg(long, value_name = "ORIGINS", value_delimiter = ',')]
        embed_origins: Option<Vec<String>>,
        #[command(flatten)]
        of: ShareArgs,
    },
    /// Revoke a share. The next request with it is refused
    Delete {
        /// Id of the share: shr_…
        share_id: String,
        #[command(flatten)]
        of: ShareArgs,
    },
}

impl ManagementCommand for ShareCommand {
    fn send(&self, server: &ManagedServer) -> Result<Reply, Failure> {
        let (Self::List { of } | Self::Create { of, .. } | Self::Delete { of, .. }) = self;
        let path = format!("/projects/{}/shares", server.client.project(of.project.as_deref())?);
        match self {
            Self::List { .. } => server.list(&path, "shares", &["share_id", "name", "revenue", "expires_at"]),
            // A server that this command starts would put its own address into the link.
            Self::Create { .. } if server.is_own => {
                Err(Failure("the link contains the address of the server: start it with `headcount serve` first".into()))
            }
            Self::Create { name, revenue, expires_at, embed_origins, .. } => {
                let body = Body::default().set("name", Some(name.as_str())).set("revenue", Some(*revenue));
                let body = body.set("expires_at", expires_at.as_deref()).list("embed_origins", embed_origins.as_deref());
                server.create(&path, &body)
            }
            Self::Delete { share_id, .. } => server.remove(&format!("{path}/{share_id}"), format!("revoked {share_id}")),
        }
    }
}
