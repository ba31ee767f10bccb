//! `/members`, and `headcount member`.

use headcount_api::command::{Body, Failure, ManagedServer, ManagementCommand, Reply};
use headcount_api::endpoint::*;
use headcount_api::management::{self, optional_role, role};
use headcount_api::openapi::schemas;
use headcount_control::{ApiToken, Member, MemberId, MemberPatch, NewMember, Role};

json_body! {
    /// A new member.
    #[schema(example = json!({"email": "ada@acme.com", "name": "Ada", "role": "admin"}))]
    pub(crate) struct NewMemberShape {
        /// The e-mail address. No other member of the organization has it.
        #[schema(min_length = 1, max_length = 254)]
        email: String = required("a string"),
        /// The name. Default: none.
        #[schema(max_length = 200)]
        name: Option<String> = optional("a string"),
        /// The role. The member's tokens have the lower of this and their own.
        #[schema(schema_with = schemas::role)]
        role: Role = with(role),
    }
}

json_body! {
    /// A change of a member: absent fields stay unchanged.
    #[schema(example = json!({"role": "member"}))]
    pub(crate) struct MemberPatchShape {
        /// The new e-mail address.
        #[schema(min_length = 1, max_length = 254)]
        email: Option<String> = optional("a string"),
        /// The new name; empty removes it.
        #[schema(max_length = 200)]
        name: Option<String> = optional("a string"),
        /// The new role. It holds for the member's tokens from the next request on.
        #[schema(schema_with = schemas::role)]
        role: Option<Role> = with(optional_role),
    }
}

answer! {
    /// A member: a person who holds API tokens.
    pub(crate) struct MemberAnswer from |member: &Member| {
        /// The member's id.
        member_id: String = member.id.to_string(),
        /// The e-mail address, in lower case.
        email: String = member.email.clone(),
        /// The name; null if there is none.
        #[schema(required)]
        name: Option<String> = member.name.clone(),
        /// The role.
        #[schema(schema_with = schemas::role)]
        role: Role,
        /// The time of creation.
        created_at: Timestamp,
    }
}

/// The members of an organization.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MembersAnswer {
    /// The members, oldest first.
    members: Vec<MemberAnswer>,
    /// Whether some are left out: never.
    truncated: bool,
}

/// Checks that only owners create, change and remove owners.
fn may_manage(caller: &ApiToken, role: Role) -> Result<()> {
    if role == Role::Owner && caller.role != Role::Owner {
        let message = "only a token of role owner creates, changes and removes members of role owner";
        return Err(ApiError::new(ErrorCode::InsufficientRole, message));
    }
    Ok(())
}

/// The id in the path, of an operation without parameters.
fn only_id(request: &HttpRequest) -> Result<MemberId> {
    NoParameters::check(request)?;
    id_in_path(request, "member_id", "member")
}

/// The members of the organization.
#[utoipa::path(
    get, path = "/members", tag = "management", operation_id = "list_members",
    responses((status = 200, description = "The members, oldest first.", body = MembersAnswer), NotModified),
)]
pub(crate) async fn list(ApiCall { state, request, .. }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    NoParameters::check(&request)?;
    let members = state.engine.registry().members(caller.organization())?;
    let members = members.iter().map(|member| MemberAnswer::from(&**member)).collect();
    etag::json(&request, &MembersAnswer { members, truncated: false })
}

/// Creates a member: a person who holds API tokens. There is no password and no invitation; `POST /api-tokens` with `member_id` creates a token.
#[utoipa::path(
    post, path = "/members", tag = "management", operation_id = "create_member",
    request_body = NewMemberShape,
    responses((status = 201, description = "The member.", body = MemberAnswer), ConflictErrors),
)]
pub(crate) async fn create(ApiCall { state, request, payload }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    let NewMemberShape { email, name, role } = json::read(&state, &request, payload).await?;
    may_manage(&caller.token, role)?;
    let organization = caller.organization();
    let new = NewMember { email, name, role };
    let member = management::change(&state, caller.author(&state, &request), move |registry, by| {
        registry.create_member(organization, new, by)
    })
    .await?;
    Ok(management::created(&MemberAnswer::from(&*member)))
}

/// One member.
#[utoipa::path(
    get, path = "/members/{member_id}", tag = "management", operation_id = "get_member",
    params(MemberPath),
    responses((status = 200, description = "The member.", body = MemberAnswer), NotModified),
)]
pub(crate) async fn show(ApiCall { state, request, .. }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    let id = only_id(&request)?;
    let member = state.engine.registry().member(caller.organization(), &id)?;
    etag::json(&request, &MemberAnswer::from(&*member))
}

/// Changes a member: all fields of the body, or none. Only a token of role owner changes owners, or makes a member one.
#[utoipa::path(
    patch, path = "/members/{member_id}", tag = "management", operation_id = "update_member",
    params(MemberPath), request_body = MemberPatchShape,
    responses((status = 200, description = "The member as it is now.", body = MemberAnswer), ConflictErrors),
)]
pub(crate) async fn change(ApiCall { state, request, payload }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    let id = only_id(&request)?;
    let MemberPatchShape { email, name, role } = json::read(&state, &request, payload).await?;
    let organization = caller.organization();
    let current = state.engine.registry().member(organization, &id)?.role;
    may_manage(&caller.token, current)?;
    may_manage(&caller.token, role.unwrap_or(current))?;
    let patch = MemberPatch { email, name, role };
    let member = management::change(&state, caller.author(&state, &request), move |registry, by| {
        registry.update_member(organization, &id, patch, by)
    })
    .await?;
    Ok(HttpResponse::Ok().json(MemberAnswer::from(&*member)))
}

/// Removes a member, and revokes the member's tokens from the next request on. Only a token of role owner removes owners.
#[utoipa::path(
    delete, path = "/members/{member_id}", tag = "management", operation_id = "remove_member",
    params(MemberPath),
    responses((status = 204, description = "The member and its tokens are removed."), ConflictErrors),
)]
pub(crate) async fn remove(ApiCall { state, request, .. }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    let id = only_id(&request)?;
    let organization = caller.organization();
    may_manage(&caller.token, state.engine.registry().member(organization, &id)?.role)?;
    management::change(&state, caller.author(&state, &request), move |registry, by| {
        registry.remove_member(organization, &id, by)
    })
    .await?;
    Ok(HttpResponse::NoContent().finish())
}

/// The path of the members.
const PATH: &str = "/members";

/// A command about the members of the organization.
#[derive(Debug, clap::Subcommand)]
pub enum MemberCommand {
    /// List the members, oldest first
    List,
    /// Create a member, a person with API tokens
    Create {
        /// E-mail address
        #[arg(long)]
        email: String,
        /// Role: owner, admin or member
        #[arg(long)]
        role: String,
        /// Name
        #[arg(long)]
        name: Option<String>,
    },
    /// Show a member
    Show {
        /// Id of the member: mem_…
        member_id: String,
    },
    /// Change a member. Only the fields with a flag change
    Set {
        /// Id of the member: mem_…
        member_id: String,
        /// New e-mail address
        #[arg(long)]
        email: Option<String>,
        /// New role: owner, admin or member
        #[arg(long)]
        role: Option<String>,
        /// New name; "" removes it
        #[arg(long)]
        name: Option<String>,
    },
    /// Remove a member, and revoke the member's tokens
    Delete {
        /// Id of the member: mem_…
        member_id: String,
    },
}

fn body(email: Option<&str>, role: Option<&str>, name: Option<&str>) -> Body {
    Body::default().set("email", email).set("role", role).set("name", name)
}

impl ManagementCommand for MemberCommand {
    fn send(&self, server: &ManagedServer) -> Result<Reply, Failure> {
        let path = |id: &str| format!("{PATH}/{id}");
        match self {
            Self::List => server.list(PATH, "members", &["member_id", "role", "email", "name"]),
            Self::Create { email, role, name } => server.create(PATH, &body(Some(email), Some(role), name.as_deref())),
            Self::Show { member_id } => server.show(&path(member_id)),
            Self::Set { member_id, email, role, name } => {
                server.change(&path(member_id), &body(email.as_deref(), role.as_deref(), name.as_deref()))
            }
            Self::Delete { member_id } => server.remove(&path(member_id), format!("removed {member_id} and the member's tokens")),
        }
    }
}
