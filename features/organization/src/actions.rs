//! `GET /organization/actions`.

use headcount_api::endpoint::*;
use headcount_control::{ActionEntry, ActionReason, ActionsQuery};
use headcount_domain::{NamedValues, Timezone};
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};

query_parameters! {
    /// The entries to list.
    pub(crate) struct ActionsParameters {
        /// The most entries to return.
        limit: ListLimit,
        /// Only entries older than this one of the list: `act_…`.
        starting_after: Option<Text<64>>,
    }
}

fn reasons() -> Object {
    let names = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(ActionReason::names()));
    names.description(Some("`build`: a build of a company profile spent them; `refund`: it failed, and they were given back; `set`: an administrator set the balance.")).build()
}

/// A part of the ledger of Actions.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ActionsAnswer {
    /// The changes of the balance, newest first.
    actions: Vec<ActionRow>,
    /// Whether older ones follow.
    truncated: bool,
    /// How many Actions are left.
    #[schema(minimum = 0)]
    balance: u64,
}

answer! {
    /// A change of the balance.
    pub(crate) struct ActionRow from |entry: ActionEntry| {
        /// The entry's id.
        id: String,
        /// When.
        at: Timestamp,
        /// By how much.
        change: i64,
        /// The balance after it.
        #[schema(minimum = 0)]
        balance: u64,
        /// Why.
        #[schema(schema_with = reasons)]
        reason: ActionReason,
        /// The build of a company profile that it is about; null for none.
        #[schema(required)]
        run_id: Option<String> = entry.run_id.map(Into::into),
        /// The token of whoever made it; null for none.
        #[schema(required)]
        token_id: Option<String> = entry.token_id.map(Into::into),
    }
}

/// The ledger of the organization's Actions, and its balance. The last 10,000 entries are kept.
#[utoipa::path(
    get, path = "/organization/actions", tag = "management", operation_id = "list_actions",
    params(ActionsParameters),
    responses((status = 200, description = "The entries, newest first.", body = ActionsAnswer), NotModified, UnavailableErrors),
)]
pub(crate) async fn list(ApiCall { state, request, .. }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    let ActionsParameters { limit, starting_after } = ActionsParameters::read(&request, &Calendar::new(&state, Timezone::UTC))?;
    let query = ActionsQuery { limit: limit.rows(), starting_after: after(starting_after)? };
    let page = state.engine.registry().actions(caller.organization(), &query)?;
    let actions = page.entries.into_iter().map(ActionRow::from).collect();
    etag::json(&request, &ActionsAnswer { actions, truncated: page.truncated, balance: page.balance })
}
