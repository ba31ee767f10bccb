//! `/projects/{project_id}/keys`: public keys, their rotation and their rate limits. Several are
//! valid at once.

use headcount_api::command::{Body, Failure, ManagedServer, ManagementCommand, Reply};
use headcount_api::endpoint::*;
use headcount_api::management;
use headcount_api::openapi::schemas;
use headcount_control::{RateLimit, RateLimitPatch};

/// A new public key.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KeyAnswer {
    /// The new key.
    public_key: String,
    /// All keys of the project that are valid, oldest first.
    public_keys: Vec<String>,
}

/// The public keys of a project.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KeysAnswer {
    /// The keys that are valid, oldest first.
    keys: Vec<KeyLimitAnswer>,
    /// Whether some are left out: never.
    truncated: bool,
}

answer! {
    /// A public key and its rate limit.
    pub(crate) struct KeyLimitAnswer from |limit: Option<&RateLimit>, public_key: &str| {
        /// The key.
        public_key: String = public_key.to_owned(),
        /// How many events a second may be sent with it; 0: no limit.
        #[schema(maximum = 1_000_000)]
        rate_limit: u32 = limit.map_or(0, |limit| limit.per_second),
        /// How many may be sent at once after a pause; 0: no limit.
        #[schema(maximum = 1_000_000)]
        burst: u32 = limit.map_or(0, |limit| limit.burst()),
    }
}

json_body! {
    /// A change of a public key's rate limit: absent fields stay unchanged.
    #[schema(example = json!({"rate_limit": 100, "burst": 500}))]
    pub(crate) struct KeyLimitShape {
        /// How many events a second may be sent with the key; 0: no limit, and no burst.
        #[schema(maximum = 1_000_000)]
        rate_limit: Option<u32> = optional(schemas::up_to_rate("events a second, 0 for no limit")),
        /// How many may be sent at once after a pause, at least 1 where there is a limit. Default: as many as `rate_limit`.
        #[schema(maximum = 1_000_000)]
        burst: Option<u32> = optional(schemas::up_to_rate("events at once")),
    }
}

/// The public keys of a project, with their rate limits.
#[utoipa::path(
    get, path = "/projects/{project_id}/keys", tag = "management", operation_id = "list_public_keys",
    params(ProjectPath),
    responses((status = 200, description = "The keys that are valid, oldest first.", body = KeysAnswer), NotModified),
)]
pub(crate) async fn list(ApiCall { state, request, .. }: ApiCall, caller: ProjectCaller) -> Result<HttpResponse> {
    let (organization, id, _) = management::of_project(&state, &request, &caller)?;
    let project = state.engine.registry().project(organization, id)?;
    let keys = project.public_keys.iter().map(|key| KeyLimitAnswer::new(project.key_limits.get(key), key)).collect();
    etag::json(&request, &KeysAnswer { keys, truncated: false })
}

/// Changes how many events may be sent with a public key, or takes its rate limit away. It holds from the next request on, and
/// for this key alone; a key whose limit was changed may send a whole burst at once.
#[utoipa::path(
    patch, path = "/projects/{project_id}/keys/{public_key}", tag = "management", operation_id = "update_public_key",
    params(ProjectPath, KeyPath), request_body = KeyLimitShape,
    responses((status = 200, description = "The key as it is now.", body = KeyLimitAnswer)),
)]
pub(crate) async fn change(ApiCall { state, request, payload }: ApiCall, caller: ProjectCaller) -> Result<HttpResponse> {
    let (organization, id, author) = management::of_project(&state, &request, &caller)?;
    let KeyLimitShape { rate_limit, burst } = json::read(&state, &request, payload).await?;
    let patch = RateLimitPatch { per_second: rate_limit, burst };
    let key = request.parameter("public_key").to_owned();
    let changed = management::change(&state, author, move |registry, by| {
        let project = registry.limit_public_key(organization, id, &key, patch, by)?;
        Ok(KeyLimitAnswer::new(project.key_limits.get(&key), &key))
    });
    Ok(HttpResponse::Ok().json(changed.await?))
}

/// Gives a project one more public key; those it has stay valid. The body, if there is one, is an empty object.
#[utoipa::path(
    post, path = "/projects/{project_id}/keys", tag = "management", operation_id = "create_public_key",
    params(ProjectPath),
    responses((status = 201, description = "The new key, and all that are valid.", body = KeyAnswer), ConflictErrors, BodyErrors),
)]
pub(crate) async fn create(ApiCall { state, request, payload }: ApiCall, caller: ProjectCaller) -> Result<HttpResponse> {
    let (organization, id, author) = management::of_project(&state, &request, &caller)?;
    let EmptyBody = json::read(&state, &request, payload).await?;
    let added = management::change(&state, author, move |registry, by| {
        let public_key = registry.add_public_key(organization, id, by)?;
        Ok((public_key, registry.project(organization, id)?))
    });
    let (public_key, project) = added.await?;
    Ok(management::created(&KeyAnswer { public_key, public_keys: project.public_keys.clone() }))
}

/// Takes a public key from a project, from the next request on. Its last one stays: 409 `last_public_key`.
#[utoipa::path(
    delete, path = "/projects/{project_id}/keys/{public_key}", tag = "management", operation_id = "delete_public_key",
    params(ProjectPath, KeyPath),
    responses((status = 204, description = "The key is no longer valid."), ConflictErrors),
)]
pub(crate) async fn remove(ApiCall { state, request, .. }: ApiCall, caller: ProjectCaller) -> Result<HttpResponse> {
    let (organization, id, author) = management::of_project(&state, &request, &caller)?;
    let key = request.parameter("public_key").to_owned();
    management::change(&state, author, move |registry, by| registry.remove_public_key(organization, id, &key, by)).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// A command about the public keys of a project.
#[derive(Debug, clap::Args)]
pub struct KeyArgs {
    /// Project, by id or unique name [default: the only one]
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,
}

/// A command about the public keys of a project.
#[derive(Debug, clap::Subcommand)]
#[expect(missing_docs, reason = "doc comments of flags are the help that users see")]
pub enum KeyCommand {
    /// List the keys that are valid, oldest first
    List {
        #[command(flatten)]
        of: KeyArgs,
    },
    /// Add a key; the others stay valid
    Create {
        #[command(flatten)]
        of: KeyArgs,
    },
    /// Show a key and its rate limit
    Show {
        /// Public key
        public_key: String,
        #[command(flatten)]
        of: KeyArgs,
    },
    /// Change the rate limit of a key
    Set {
        /// Public key
        public_key: String,
        /// Events per second; 0 removes the limit
        #[arg(long, value_name = "N")]
        rate_limit: Option<u32>,
        /// Burst: events at once after a pause [default: the events of one second]
        #[arg(long, value_name = "N")]
        burst: Option<u32>,
        #[command(flatten)]
        of: KeyArgs,
    },
    /// Remove a key. The next request with it is refused
    Delete {
        /// Public key
        public_key: String,
        #[command(flatten)]
        of: KeyArgs,
    },
}

impl ManagementCommand for KeyCommand {
    fn send(&self, server: &ManagedServer) -> Result<Reply, Failure> {
        let (Self::List { of } | Self::Create { of } | Self::Show { of, .. } | Self::Set { of, .. } | Self::Delete { of, .. }) =
            self;
        let path = format!("/projects/{}/keys", server.client.project(of.project.as_deref())?);
        match self {
            Self::List { .. } => server.list(&path, "keys", &["public_key", "rate_limit", "burst"]),
            Self::Create { .. } => server.create(&path, &Body::default()),
            Self::Show { public_key, .. } => server.find(&path, "keys", "public_key", public_key),
            Self::Set { public_key, rate_limit, burst, .. } => {
                let body = Body::default().set("rate_limit", *rate_limit).set("burst", *burst);
                server.change(&format!("{path}/{public_key}"), &body)
            }
            Self::Delete { public_key, .. } => server.remove(&format!("{path}/{public_key}"), format!("deleted {public_key}")),
        }
    }
}
