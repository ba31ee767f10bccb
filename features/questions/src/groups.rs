//! `GET /groups/…`: organization-wide.

use headcount_api::endpoint::*;
use headcount_api::respond::answer::Completed;
use headcount_domain::queries::{self, GroupMetrics, Listed};

type CompletedGroup = Completed<GroupAnswer>;
type CompletedTopGroups = Completed<TopGroupsAnswer>;

query_parameters! {
    /// The group and the days that the figures are of.
    pub(crate) struct GroupParameters {
        range_days: RangeDays,
        /// The type of the group. `company` is refused: companies have operations of their own.
        group_type: GroupTypeName,
        /// The group's key: the `group_id` of events.
        group_key: Text<512>,
    }
}

query_parameters! {
    /// The groups, the days and the length of the list.
    pub(crate) struct TopGroupsParameters {
        range_days: RangeDays,
        /// The type of the groups. `company` is refused: companies have operations of their own.
        group_type: GroupTypeName,
        /// The most rows to return.
        limit: ListLimit,
    }
}

answer! {
    /// The figures of a group.
    pub(crate) struct GroupAnswer from GroupMetrics {
        /// Its type.
        group_type: String,
        /// Its key.
        group_key: String,
        /// Its name; null if no event has reported it.
        #[schema(required)]
        name: Option<String>,
        /// How many events in the range.
        events: u64,
        /// How many different users in the range.
        users: u64,
        /// The last event ever.
        last_seen: Timestamp,
    }
}

answer! {
    /// The most active groups of a type.
    pub(crate) struct TopGroupsAnswer from |top: Listed<GroupMetrics>| {
        /// Those with events in the range, the most active first.
        groups: Vec<GroupAnswer> = shown(top.rows),
        /// Whether there are more.
        truncated: bool,
    }
}

/// The figures of a group in the last days, over all projects.
#[utoipa::path(
    get, path = "/groups/metrics", tag = "groups", operation_id = "group_metrics",
    params(GroupParameters),
    responses((status = 200, description = "The figures.", body = CompletedGroup), NotModified, UnavailableErrors, NotFoundErrors),
)]
pub(crate) async fn metrics(ApiCall { state, request, .. }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    let question = OrganizationQuestion::<GroupParameters>::read(&state, &request, &caller)?;
    let GroupParameters { range_days, group_type, group_key } = &question.parameters;
    let group = async { queries::group_metrics(&question.projects(), &group_type.0, &group_key.0, range_days.0).await };
    question.reply_completed_if_found("group", range_days.0, group, GroupAnswer::from).await
}

/// The groups of a type with the most events in the last days, over all projects.
#[utoipa::path(
    get, path = "/groups/top", tag = "groups", operation_id = "top_groups",
    params(TopGroupsParameters),
    responses((status = 200, description = "The groups.", body = CompletedTopGroups), NotModified, UnavailableErrors),
)]
pub(crate) async fn top(ApiCall { state, request, .. }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    let question = OrganizationQuestion::<TopGroupsParameters>::read(&state, &request, &caller)?;
    let TopGroupsParameters { range_days, group_type, limit } = &question.parameters;
    let groups = async { queries::top_groups(&question.projects(), &group_type.0, range_days.0, limit.rows()).await };
    question.reply_completed(range_days.0, groups, TopGroupsAnswer::from).await
}

#[cfg(test)]
mod tests {
    use headcount_domain::Instant;

    use super::*;

    #[test]
    fn a_group_has_the_fields_of_the_interface() {
        let group = GroupMetrics {
            group_type: "team".to_owned(),
            group_key: "t1".to_owned(),
            name: None,
            events: 3,
            users: 2,
            last_seen: Instant(0),
        };
        let expected = concat!(
            r#"{"group_type":"team","group_key":"t1","name":null,"events":3,"users":2,"#,
            r#""last_seen":"1970-01-01T00:00:00.000Z"}"#,
        );
        assert_eq!(serde_json::to_string(&GroupAnswer::from(group)).unwrap(), expected);
    }
}
