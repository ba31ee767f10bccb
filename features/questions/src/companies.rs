//! `GET /companies/…`: organization-wide.

use headcount_api::endpoint::*;
use headcount_api::respond::answer::Completed;
use headcount_control::Organization;
use headcount_domain::queries::{self, CompanyMetrics, Listed, TopCompany, TopUser};

type CompletedCompany = Completed<CompanyAnswer>;
type CompletedTopCompanies = Completed<TopCompaniesAnswer>;
type CompletedTopUsers = Completed<TopUsersAnswer>;

/// The thing that a 404 names.
const COMPANY: &str = "company";

query_parameters! {
    /// The company to look up.
    pub(crate) struct LookupParameters {
        range_days: RangeDays,
        /// Its domain; scheme, `www.`, port, path and case don't matter.
        domain: Text<255>,
    }
}

query_parameters! {
    /// The days that the figures are of.
    pub(crate) struct CompanyParameters {
        range_days: RangeDays,
    }
}

query_parameters! {
    /// The days and the length of a list.
    pub(crate) struct TopParameters {
        range_days: RangeDays,
        /// The most rows to return.
        limit: ListLimit,
    }
}

answer! {
    /// The figures of a company in the range, and its first and last event ever.
    pub(crate) struct CompanyAnswer from |company: CompanyMetrics, organization: &Organization| {
        /// The company, `co_…`.
        company_id: String,
        /// Its name; null if no event has reported it.
        #[schema(required)]
        name: Option<String>,
        /// Its domain; null if it has none.
        #[schema(required)]
        domain: Option<String>,
        /// How many events.
        events: u64,
        /// How many different users.
        users: u64,
        /// Sessions that began in the range, and began as the company's.
        sessions: u64,
        /// Orders less refunds.
        revenue: Decimal,
        /// How many orders.
        orders: i64,
        /// The currency of all amounts: the organization's.
        currency: String = organization.currency.to_string(),
        /// The first event ever.
        first_seen: Timestamp,
        /// The last event ever.
        last_seen: Timestamp,
    }
}

answer! {
    /// The most active companies.
    pub(crate) struct TopCompaniesAnswer from |top: Listed<TopCompany>| {
        /// Those with events in the range, the most active first.
        companies: Vec<CompanyRow> = shown(top.rows),
        /// Whether there are more.
        truncated: bool,
    }
}

answer! {
    /// One of the most active companies.
    pub(crate) struct CompanyRow from TopCompany {
        /// The company, `co_…`.
        company_id: String,
        /// Its name; null if no event has reported it.
        #[schema(required)]
        name: Option<String>,
        /// Its domain; null if it has none.
        #[schema(required)]
        domain: Option<String>,
        /// How many events in the range.
        events: u64,
        /// How many different users in the range.
        users: u64,
        /// Orders less refunds of the range, in the organization's currency.
        revenue: Decimal,
        /// The last event ever.
        last_seen: Timestamp,
    }
}

answer! {
    /// A company's most active identified users.
    pub(crate) struct TopUsersAnswer from |top: Listed<TopUser>| {
        /// Those with events in the range, the most active first.
        users: Vec<UserRow> = shown(top.rows),
        /// Whether there are more.
        truncated: bool,
    }
}

answer! {
    /// One of a company's most active users.
    pub(crate) struct UserRow from TopUser {
        /// The user's latest e-mail address, else the `user_id`.
        resolved_identifier: String,
        /// The identity, `id_…`.
        identity_id: String,
        /// The `user_id`; null if it has none.
        #[schema(required)]
        user_id: Option<String>,
        /// The latest e-mail address; null if it has none.
        #[schema(required)]
        email: Option<String>,
        /// How many events at this company in the range.
        events: u64,
        /// The last event ever at this company.
        last_seen: Timestamp,
    }
}

/// The figures of the company of a domain in the last days, over all projects.
#[utoipa::path(
    get, path = "/companies/lookup", tag = "companies", operation_id = "lookup_company",
    params(LookupParameters),
    responses((status = 200, description = "The figures.", body = CompletedCompany), NotModified, UnavailableErrors, NotFoundErrors),
)]
pub(crate) async fn lookup(ApiCall { state, request, .. }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    let question = OrganizationQuestion::<LookupParameters>::read(&state, &request, &caller)?;
    let LookupParameters { range_days, domain } = &question.parameters;
    let company = async { queries::company_by_domain(&question.projects(), &domain.0, range_days.0).await };
    let shape = |company| CompanyAnswer::new(company, &question.subject);
    question.reply_completed_if_found(COMPANY, range_days.0, company, shape).await
}

/// The companies with the most events in the last days, over all projects.
#[utoipa::path(
    get, path = "/companies/top", tag = "companies", operation_id = "top_companies",
    params(TopParameters),
    responses((status = 200, description = "The companies.", body = CompletedTopCompanies), NotModified, UnavailableErrors),
)]
pub(crate) async fn top(ApiCall { state, request, .. }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    let question = OrganizationQuestion::<TopParameters>::read(&state, &request, &caller)?;
    let TopParameters { range_days, limit } = question.parameters;
    let companies = async { queries::top_companies(&question.projects(), range_days.0, limit.rows()).await };
    question.reply_completed(range_days.0, companies, TopCompaniesAnswer::from).await
}

/// The figures of a company in the last days, over all projects.
#[utoipa::path(
    get, path = "/companies/{company_id}/metrics", tag = "companies", operation_id = "get_company_metrics",
    params(CompanyPath, CompanyParameters),
    responses((status = 200, description = "The figures.", body = CompletedCompany), NotModified, UnavailableErrors),
)]
pub(crate) async fn metrics(ApiCall { state, request, .. }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    let question = OrganizationQuestion::<CompanyParameters>::read(&state, &request, &caller)?;
    let window = question.parameters.range_days.0;
    let company = async { queries::company_by_id(&question.projects(), company_id(&request), window).await };
    let shape = |company| CompanyAnswer::new(company, &question.subject);
    question.reply_completed_if_found(COMPANY, window, company, shape).await
}

/// A company's identified users (with a `user_id` or an e-mail address), those with the most events in the last days first.
#[utoipa::path(
    get, path = "/companies/{company_id}/top-users", tag = "companies", operation_id = "company_top_users",
    params(CompanyPath, TopParameters),
    responses((status = 200, description = "The users.", body = CompletedTopUsers), NotModified, UnavailableErrors),
)]
pub(crate) async fn top_users(ApiCall { state, request, .. }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    let question = OrganizationQuestion::<TopParameters>::read(&state, &request, &caller)?;
    let TopParameters { range_days, limit } = question.parameters;
    let users =
        async { queries::company_top_users(&question.projects(), company_id(&request), range_days.0, limit.rows()).await };
    question.reply_completed_if_found(COMPANY, range_days.0, users, TopUsersAnswer::from).await
}

/// The company that the path names. Text that is not an id names no company.
fn company_id(request: &HttpRequest) -> &str {
    request.parameter("company_id")
}

#[cfg(test)]
mod tests {
    use headcount_domain::intake::policy::Rates;
    use headcount_domain::{Amount, Currency, Instant, OrganizationId, Timezone};

    use super::*;

    fn organization() -> Organization {
        Organization {
            id: OrganizationId(1),
            name: "default".to_owned(),
            timezone: Timezone::UTC,
            currency: Currency::USD,
            fx_rates: Rates::new(),
            capabilities: Vec::new(),
            actions_balance: 0,
            created_at: Instant(0),
            events_recorded: true,
        }
    }

    #[test]
    fn a_company_has_its_fields() {
        let company = CompanyMetrics {
            company_id: "co_1".to_owned(),
            name: None,
            domain: Some("acme.com".to_owned()),
            events: 4,
            users: 2,
            sessions: 3,
            revenue: Amount(300_000),
            orders: 2,
            first_seen: Instant(0),
            last_seen: Instant(1),
        };
        let expected = concat!(
            r#"{"company_id":"co_1","name":null,"domain":"acme.com","events":4,"users":2,"sessions":3,"revenue":0.3,"orders":2,"#,
            r#""currency":"USD","first_seen":"1970-01-01T00:00:00.000Z","last_seen":"1970-01-01T00:00:00.001Z"}"#,
        );
        assert_eq!(serde_json::to_string(&CompanyAnswer::new(company, &organization())).unwrap(), expected);
    }

    #[test]
    fn rows_have_their_fields() {
        let company = TopCompany {
            company_id: "co_1".to_owned(),
            name: Some("Acme".to_owned()),
            domain: None,
            events: 4,
            users: 2,
            revenue: Amount(-1),
            last_seen: Instant(0),
        };
        let expected = concat!(
            r#"{"company_id":"co_1","name":"Acme","domain":null,"events":4,"users":2,"revenue":-0.000001,"#,
            r#""last_seen":"1970-01-01T00:00:00.000Z"}"#,
        );
        assert_eq!(serde_json::to_string(&CompanyRow::from(company)).unwrap(), expected);
        let user = TopUser {
            resolved_identifier: "ada@acme.com".to_owned(),
            identity_id: "id_1".to_owned(),
            user_id: None,
            email: Some("ada@acme.com".to_owned()),
            events: 4,
            last_seen: Instant(0),
        };
        let expected = concat!(
            r#"{"resolved_identifier":"ada@acme.com","identity_id":"id_1","user_id":null,"#,
            r#""email":"ada@acme.com","events":4,"#,
            r#""last_seen":"1970-01-01T00:00:00.000Z"}"#,
        );
        assert_eq!(serde_json::to_string(&UserRow::from(user)).unwrap(), expected);
    }
}
