//! `GET /identities/…`: organization-wide.

use headcount_api::endpoint::*;
use headcount_api::respond::answer::Completed;
use headcount_control::Organization;
use headcount_domain::queries::{self, CountOf, IdentityCounts, IdentityOrder, IdentitySelector, Listed, Profile, TopIdentity};

type CompletedProfile = Completed<ProfileAnswer>;
type CompletedReferrers = Completed<ReferrersAnswer>;
type CompletedTopPages = Completed<TopPagesAnswer>;
type CompletedTopIdentities = Completed<TopIdentitiesAnswer>;

/// The thing that a 404 names.
const IDENTITY: &str = "identity";

type AnyText = Text<{ usize::MAX }>;

query_parameters! {
    /// The user and the window of a profile.
    pub(crate) struct ProfileParameters {
        window: Dates,
        /// An e-mail address that the user ever had; of several users who share it, the one seen last. Not together with `user_id`.
        email: Option<AnyText>,
        /// The user's id, as it is sent with events. Not together with `email`.
        user_id: Option<AnyText>,
    }
}

query_parameters! {
    /// The user, the window and the length of a list.
    pub(crate) struct CountsParameters {
        window: Dates,
        /// The most rows to return.
        limit: Limit<50, 10>,
        /// An e-mail address that the user ever had; of several users who share it, the one seen last. Not together with `user_id`.
        email: Option<AnyText>,
        /// The user's id, as it is sent with events. Not together with `email`.
        user_id: Option<AnyText>,
    }
}

query_parameters! {
    /// The days, the order and the length of a list.
    pub(crate) struct TopIdentitiesParameters {
        range_days: RangeDays,
        /// The most rows to return.
        limit: ListLimit,
        /// The figure by which the list is ordered, descending.
        sort: Choice<IdentityOrder>,
    }
}

answer! {
    /// The figures of a user in the window, and the first and last event ever.
    pub(crate) struct ProfileAnswer from Profile {
        /// The identity, `id_…`.
        identity_id: String,
        /// How many events.
        events: u64,
        /// How many of them were pageviews.
        pageviews: u64,
        /// Sessions that began in the window.
        sessions: u64,
        /// Their mean duration in seconds.
        duration_avg_sec: Decimal,
        /// The 90th percentile (nearest rank) of their durations, in seconds.
        duration_p90_sec: Decimal,
        /// The share of them that is a single event, 0 to 1.
        bounce_rate: Decimal,
        /// On how many days there were events.
        active_days: u64,
        /// The first event ever.
        first_seen: Timestamp,
        /// The last event ever.
        last_seen: Timestamp,
        /// Orders less refunds, in the organization's currency.
        revenue: Decimal,
    }
}

answer! {
    /// The referrers of a user.
    pub(crate) struct ReferrersAnswer from |found: IdentityCounts| {
        /// The identity, `id_…`.
        identity_id: String,
        /// The referrers, the most frequent first.
        referrers: Vec<ReferrerCount> = shown(found.counts.rows),
        /// Whether there are more.
        truncated: bool = found.counts.truncated,
    }
}

answer! {
    /// The events from one referrer.
    pub(crate) struct ReferrerCount from |counted: (String, u64)| {
        /// The host, without `www.`.
        referrer: String = counted.0,
        /// How many events.
        count: u64 = counted.1,
    }
}

answer! {
    /// The pages that a user viewed.
    pub(crate) struct TopPagesAnswer from |found: IdentityCounts| {
        /// The identity, `id_…`.
        identity_id: String,
        /// The pages, the most viewed first.
        pages: Vec<PageCount> = shown(found.counts.rows),
        /// Whether there are more.
        truncated: bool = found.counts.truncated,
    }
}

answer! {
    /// The pageviews of one page.
    pub(crate) struct PageCount from |counted: (String, u64)| {
        /// The page, without query and fragment.
        url: String = counted.0,
        /// How many pageviews.
        count: u64 = counted.1,
    }
}

answer! {
    /// The most active identified identities.
    pub(crate) struct TopIdentitiesAnswer from |top: Listed<TopIdentity>, organization: &Organization| {
        /// Those with events in the range, in the order of the figure that was asked for.
        identities: Vec<IdentityRow> = shown(top.rows),
        /// The currency of all amounts: the organization's.
        currency: String = organization.currency.to_string(),
        /// Whether there are more.
        truncated: bool,
    }
}

answer! {
    /// One of the most active identities.
    pub(crate) struct IdentityRow from TopIdentity {
        /// The identity, `id_…`.
        identity_id: String,
        /// The latest e-mail address, else the `user_id`.
        resolved_identifier: String,
        /// The `user_id`; null if it has none.
        #[schema(required)]
        user_id: Option<String>,
        /// The latest e-mail address; null if it has none.
        #[schema(required)]
        email: Option<String>,
        /// How many events in the range.
        events: u64,
        /// Orders less refunds of the range.
        revenue: Decimal,
        /// The last event ever.
        last_seen: Timestamp,
    }
}

/// Returns the user that exactly one of the two parameters names.
fn identity_selector(email: &Option<AnyText>, user_id: &Option<AnyText>) -> Result<IdentitySelector> {
    match (email, user_id) {
        (Some(email), None) => Ok(IdentitySelector::Email(email.0.clone())),
        (None, Some(user)) => Ok(IdentitySelector::User(user.0.clone())),
        (both, _) => {
            let given = if both.is_some() { "both are" } else { "neither is" };
            let message = format!("exactly one of `email` and `user_id` is required; {given} given");
            Err(ApiError::new(ErrorCode::InvalidParameter, message))
        }
    }
}

/// The figures of a user in a window, over all projects.
#[utoipa::path(
    get, path = "/identities/profile", tag = "identities", operation_id = "identity_profile",
    params(ProfileParameters),
    responses((status = 200, description = "The figures.", body = CompletedProfile), NotModified, UnavailableErrors, NotFoundErrors),
)]
pub(crate) async fn profile(ApiCall { state, request, .. }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    let question = OrganizationQuestion::<ProfileParameters>::read(&state, &request, &caller)?;
    let ProfileParameters { window, email, user_id } = &question.parameters;
    let user = identity_selector(email, user_id)?;
    let profile = async { queries::profile(&question.projects(), &user, window.0).await };
    question.reply_completed_if_found(IDENTITY, window.0, profile, ProfileAnswer::from).await
}

/// The external referrers of a user's events in a window, over all projects.
#[utoipa::path(
    get, path = "/identities/referrers", tag = "identities", operation_id = "identity_referrers",
    params(CountsParameters),
    responses(
        (status = 200, description = "The referrers.", body = CompletedReferrers),
        NotModified, UnavailableErrors, NotFoundErrors,
    ),
)]
pub(crate) async fn referrers(ApiCall { state, request, .. }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    let question = OrganizationQuestion::<CountsParameters>::read(&state, &request, &caller)?;
    let CountsParameters { window, limit, email, user_id } = &question.parameters;
    let user = identity_selector(email, user_id)?;
    let counts = async { queries::counts(&question.projects(), &user, CountOf::Referrers, window.0, limit.rows()).await };
    question.reply_completed_if_found(IDENTITY, window.0, counts, ReferrersAnswer::from).await
}

/// The pages that a user viewed in a window, over all projects.
#[utoipa::path(
    get, path = "/identities/top-pages", tag = "identities", operation_id = "identity_top_pages",
    params(CountsParameters),
    responses((status = 200, description = "The pages.", body = CompletedTopPages), NotModified, UnavailableErrors, NotFoundErrors),
)]
pub(crate) async fn top_pages(ApiCall { state, request, .. }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    let question = OrganizationQuestion::<CountsParameters>::read(&state, &request, &caller)?;
    let CountsParameters { window, limit, email, user_id } = &question.parameters;
    let user = identity_selector(email, user_id)?;
    let counts = async { queries::counts(&question.projects(), &user, CountOf::Pages, window.0, limit.rows()).await };
    question.reply_completed_if_found(IDENTITY, window.0, counts, TopPagesAnswer::from).await
}

/// The identities with a `user_id` or an e-mail address that were active in the last days, over all projects. It costs a pass over the events of these days.
#[utoipa::path(
    get, path = "/identities/top", tag = "identities", operation_id = "top_identities",
    params(TopIdentitiesParameters),
    responses(
        (status = 200, description = "The identities.", body = CompletedTopIdentities, example = json!({
            "identities": [{
                "identity_id": "id_5Yk3bQ8fWcTn2LhRzXv0Ga", "resolved_identifier": "ada@acme.com", "user_id": "ada", "email": "ada@acme.com",
                "events": 214, "revenue": 129.9, "last_seen": "2026-03-09T14:21:07.412Z",
            }],
            "currency": "USD", "truncated": true, "complete_from": null,
        })),
        NotModified, UnavailableErrors,
    ),
)]
pub(crate) async fn top(ApiCall { state, request, .. }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    let question = OrganizationQuestion::<TopIdentitiesParameters>::read(&state, &request, &caller)?;
    let TopIdentitiesParameters { range_days: RangeDays(window), limit, sort: Choice(order) } = question.parameters;
    let identities = state.engine.scans.top_identities(question.subject.id, window, order, limit.rows());
    let shape = |top| TopIdentitiesAnswer::new(top, &question.subject);
    question.reply_completed(window, identities, shape).await
}

#[cfg(test)]
mod tests {
    use headcount_domain::{Amount, Instant};

    use super::*;

    #[test]
    fn a_profile_has_the_fields_of_the_interface() {
        let profile = Profile {
            identity_id: "id_1".to_owned(),
            events: 7,
            pageviews: 5,
            sessions: 3,
            duration_avg_sec: Amount(33_333_333),
            duration_p90_sec: Amount(90_500_000),
            bounce_rate: Amount(333_333),
            active_days: 2,
            first_seen: Instant(0),
            last_seen: Instant(1_712_916_300_007),
            revenue: Amount(-1_500_000),
        };
        let expected = concat!(
            r#"{"identity_id":"id_1","events":7,"pageviews":5,"sessions":3,"duration_avg_sec":33.333333,"duration_p90_sec":90.5,"#,
            r#""bounce_rate":0.333333,"active_days":2,"first_seen":"1970-01-01T00:00:00.000Z","#,
            r#""last_seen":"2024-04-12T10:05:00.007Z","revenue":-1.5}"#,
        );
        assert_eq!(serde_json::to_string(&ProfileAnswer::from(profile)).unwrap(), expected);
    }

    #[test]
    fn counts_have_the_fields_of_the_interface() {
        let counts = |name: &str| IdentityCounts {
            identity_id: "id_1".to_owned(),
            counts: Listed { rows: vec![(name.to_owned(), 2)], truncated: true },
        };
        let referrers = serde_json::to_string(&ReferrersAnswer::from(counts("google.com"))).unwrap();
        assert_eq!(referrers, r#"{"identity_id":"id_1","referrers":[{"referrer":"google.com","count":2}],"truncated":true}"#);
        let pages = serde_json::to_string(&TopPagesAnswer::from(counts("https://a.example/"))).unwrap();
        assert_eq!(pages, r#"{"identity_id":"id_1","pages":[{"url":"https://a.example/","count":2}],"truncated":true}"#);
    }
}
