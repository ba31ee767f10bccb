//! `/organization`, and `POST /organizations`, which needs the root token.

use std::collections::BTreeMap;

use headcount_api::endpoint::*;
use headcount_api::management;
use headcount_api::openapi::schemas;
use headcount_control::{Capability, Organization, OrganizationPatch};
use headcount_domain::intake::policy::Rates;
use headcount_domain::money::{Currency, Rate};
use headcount_domain::names::NamedValues;
use headcount_domain::time::Timezone;
use serde::Serializer;
use serde_json::value::RawValue;
use utoipa::openapi::schema::{AdditionalProperties, Object, ObjectBuilder, Type};

json_body! {
    /// A change of the organization: absent fields stay unchanged.
    #[schema(example = json!({"name": "Acme", "timezone": "Europe/Berlin", "fx_rates": {"EUR": 1.08}}))]
    pub(crate) struct OrganizationPatchShape {
        /// Another name.
        #[schema(min_length = 1, max_length = 200)]
        name: Option<String> = optional("a string"),
        /// Another timezone, by its IANA name, as long as no event was recorded.
        #[schema(value_type = Option<String>)]
        timezone: Option<Timezone> = optional("an IANA timezone name such as \"Europe/Berlin\""),
        /// Another currency for figures over several projects, as long as no event was recorded.
        #[schema(pattern = "^[A-Za-z]{3}$", value_type = Option<String>)]
        currency: Option<Currency> = optional("an ISO 4217 currency code such as EUR"),
        /// Replaces the whole table: the worth of one unit of each currency in USD. USD itself is 1.
        #[schema(schema_with = fx_rates)]
        fx_rates: Option<Rates> = with(rates),
        /// Replaces the whole list.
        #[schema(schema_with = schemas::capabilities)]
        capabilities: Option<Vec<Capability>> = optional(capability_names()),
        /// How many Actions are left.
        #[schema(minimum = 0)]
        actions_balance: Option<u64> = optional("an integer that is not negative"),
    }
}

fn capability_names() -> String {
    format!("a list of: {}", Capability::names().join(", "))
}

/// An organization.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OrganizationAnswer {
    /// Its id.
    organization_id: String,
    /// Its name.
    name: String,
    /// The timezone of its days: an IANA name.
    timezone: String,
    /// The currency of figures over several projects.
    currency: String,
    /// The worth of one unit of each currency in USD; USD itself is 1 and not listed.
    #[schema(schema_with = fx_rates)]
    fx_rates: BTreeMap<String, ExactRate>,
    /// The optional features that it may use.
    #[schema(schema_with = schemas::capabilities)]
    capabilities: Vec<Capability>,
    /// How many Actions are left.
    #[schema(minimum = 0)]
    actions_balance: u64,
    /// When it was made.
    created_at: Timestamp,
}

/// A rate, written as the decimal that it is.
#[derive(Debug, Clone, Copy)]
struct ExactRate(Rate);

impl Serialize for ExactRate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw = RawValue::from_string(self.0.to_string()).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

fn fx_rates() -> Object {
    let rate = ObjectBuilder::new().schema_type(Type::Number).minimum(Some(1e-9)).maximum(Some(1e6));
    let code = ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[A-Za-z]{3}$")).build();
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .description(Some("The worth of one unit of each currency in USD. USD itself is 1, and not shown."))
        .property_names(Some(code))
        .additional_properties(Some(AdditionalProperties::from(rate)))
        .build()
}

impl From<&Organization> for OrganizationAnswer {
    fn from(organization: &Organization) -> Self {
        let rate = |(currency, rate): (&Currency, &Rate)| (currency.to_string(), ExactRate(*rate));
        Self {
            organization_id: organization.id.to_string(),
            name: organization.name.clone(),
            timezone: organization.timezone.name().to_owned(),
            currency: organization.currency.to_string(),
            fx_rates: organization.fx_rates.iter().map(rate).collect(),
            capabilities: organization.capabilities.clone(),
            actions_balance: organization.actions_balance,
            created_at: organization.created_at.into(),
        }
    }
}

/// Reads the table of rates, each by the text of its number.
fn rates(fields: &Fields<'_>, name: &str) -> Result<Option<Rates>, ApiError> {
    let table: Option<BTreeMap<String, &RawValue>> = fields.optional(name, "an object of numbers such as {\"EUR\": 1.08}")?;
    let Some(table) = table else { return Ok(None) };
    let mut rates = Rates::new();
    for (code, number) in table {
        let wrong = |message: String| ApiError::parameter(format!("{name}.{code}"), message);
        let currency = Currency::parse(&code).map_err(|error| wrong(format!("{code:?} {error}")))?;
        let rate = Rate::parse(number.get()).map_err(|error| wrong(format!("{error}, not {}", number.get())))?;
        if rates.insert(currency, rate).is_some() {
            return Err(wrong(format!("{currency} is given more than once")));
        }
    }
    Ok(Some(rates))
}

/// The caller's organization.
#[utoipa::path(
    get, path = "/organization", tag = "management", operation_id = "get_organization",
    responses((status = 200, description = "The organization.", body = OrganizationAnswer), NotModified),
)]
pub(crate) async fn show(ApiCall { state, request, .. }: ApiCall, caller: Caller) -> Result<HttpResponse, ApiError> {
    NoParameters::check(&request)?;
    let organization = state.engine.registry().organization(caller.organization())?;
    etag::json(&request, &OrganizationAnswer::from(&*organization))
}

/// Changes the caller's organization: all fields of the body, or none. After the first event the timezone (409 `timezone_fixed`) and
/// the currency (409 `currency_fixed`) can't change.
#[utoipa::path(
    patch, path = "/organization", tag = "management", operation_id = "update_organization",
    request_body = OrganizationPatchShape,
    responses((status = 200, description = "The organization as it is now.", body = OrganizationAnswer), ConflictErrors),
)]
pub(crate) async fn change(ApiCall { state, request, payload }: ApiCall, caller: Caller) -> Result<HttpResponse, ApiError> {
    NoParameters::check(&request)?;
    let id = caller.organization();
    let OrganizationPatchShape { name, timezone, currency, fx_rates, capabilities, actions_balance } =
        json::read(&state, &request, payload).await?;
    let patch = OrganizationPatch { name, timezone, currency, fx_rates, capabilities, actions_balance };
    let organization = management::change(&state, caller.author(&state, &request), move |registry, by| {
        registry.update_organization(id, patch, by)
    })
    .await?;
    Ok(HttpResponse::Ok().json(OrganizationAnswer::from(&*organization)))
}

json_body! {
    /// An organization to be made.
    #[schema(example = json!({"name": "Acme"}))]
    pub(crate) struct NewOrganizationShape {
        /// Its name.
        #[schema(min_length = 1, max_length = 200)]
        name: String = required("a string"),
    }
}

/// A new organization, and the keys that it comes with.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NewOrganizationAnswer {
    /// Its id.
    organization_id: String,
    /// Its first project.
    project_id: String,
    /// The public key of that project.
    public_key: String,
    /// A token of role owner with every scope. It is shown here once, and kept nowhere.
    api_token: String,
}

/// Makes an organization, with one project and one token.
#[utoipa::path(
    post, path = "/organizations", tag = "management", operation_id = "create_organization",
    request_body = NewOrganizationShape,
    responses(
        (status = 201, description = "The organization, and its token, which is shown this once.", body = NewOrganizationAnswer),
    ),
    security(("root_token" = []))
)]
pub(crate) async fn create(ApiCall { state, request, payload }: ApiCall) -> Result<HttpResponse, ApiError> {
    let author = auth::root(&state, &request)?;
    let NewOrganizationShape { name } = json::read(&state, &request, payload).await?;
    let keys = management::change(&state, author, move |registry, by| registry.create_organization(&name, by)).await?;
    Ok(management::created(&NewOrganizationAnswer {
        organization_id: keys.organization_id.to_string(),
        project_id: keys.project_id.to_string(),
        public_key: keys.public_key,
        api_token: keys.api_token.expose().to_owned(),
    }))
}
