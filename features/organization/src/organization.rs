//! `/organization`, and `POST /organizations`, which needs the root token.

use std::collections::BTreeMap;

use headcount_api::command::{Body, Failure, ManagedServer, ManagementCommand, Reply, Rights};
use headcount_api::endpoint::*;
use headcount_api::management;
use headcount_api::openapi::schemas;
use headcount_control::{Capability, Organization, OrganizationKeys, OrganizationPatch};
use headcount_domain::intake::policy::Rates;
use headcount_domain::{Currency, NamedValues, Rate, Timezone};
use serde::Serializer;
use serde_json::value::RawValue;
use utoipa::openapi::schema::{AdditionalProperties, Object, ObjectBuilder, Type};

json_body! {
    /// A change of the organization: absent fields stay unchanged.
    #[schema(example = json!({"name": "Acme", "timezone": "Europe/Berlin", "fx_rates": {"EUR": 1.08}}))]
    pub(crate) struct OrganizationPatchShape into OrganizationPatch {
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

answer! {
    /// An organization.
    pub(crate) struct OrganizationAnswer from |organization: &Organization| {
        /// Its id.
        organization_id: String = organization.id.to_string(),
        /// Its name.
        name: String = organization.name.clone(),
        /// The timezone of its days: an IANA name.
        timezone: String = organization.timezone.name().to_owned(),
        /// The currency of figures over several projects.
        currency: String = organization.currency.to_string(),
        /// The worth of one unit of each currency in USD; USD itself is 1 and not listed.
        #[schema(schema_with = fx_rates)]
        fx_rates: BTreeMap<String, ExactRate> = exact(&organization.fx_rates),
        /// The optional features that it may use.
        #[schema(schema_with = schemas::capabilities)]
        capabilities: Vec<Capability> = organization.capabilities.clone(),
        /// How many Actions are left.
        #[schema(minimum = 0)]
        actions_balance: u64,
        /// When it was made.
        created_at: Timestamp,
    }
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

fn exact(rates: &Rates) -> BTreeMap<String, ExactRate> {
    rates.iter().map(|(currency, rate)| (currency.to_string(), ExactRate(*rate))).collect()
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

/// Reads the table of rates, each by the text of its number.
fn rates(fields: &Fields<'_>, name: &str) -> Result<Option<Rates>> {
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
pub(crate) async fn show(ApiCall { state, request, .. }: ApiCall, caller: Caller) -> Result<HttpResponse> {
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
pub(crate) async fn change(ApiCall { state, request, payload }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    NoParameters::check(&request)?;
    let id = caller.organization();
    let patch: OrganizationPatchShape = json::read(&state, &request, payload).await?;
    let organization = management::change(&state, caller.author(&state, &request), move |registry, by| {
        registry.update_organization(id, patch.into(), by)
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

answer! {
    /// A new organization, and the keys that it comes with.
    pub(crate) struct NewOrganizationAnswer from |keys: OrganizationKeys| {
        /// Its id.
        organization_id: String = keys.organization_id.to_string(),
        /// Its first project.
        project_id: String = keys.project_id.to_string(),
        /// The public key of that project.
        public_key: String,
        /// A token of role owner with every scope. It is shown here once, and kept nowhere.
        api_token: String = keys.api_token.expose().to_owned(),
    }
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
pub(crate) async fn create(ApiCall { state, request, payload }: ApiCall) -> Result<HttpResponse> {
    let author = auth::root(&state, &request)?;
    let NewOrganizationShape { name } = json::read(&state, &request, payload).await?;
    let keys = management::change(&state, author, move |registry, by| registry.create_organization(&name, by)).await?;
    Ok(management::created(&NewOrganizationAnswer::from(keys)))
}

/// The path of the organization.
const PATH: &str = "/organization";

/// A command about the organization.
#[derive(Debug, clap::Subcommand)]
pub enum OrganizationCommand {
    /// Show the organization
    Show,
    /// Change the organization. Only the settings with a flag change
    Set(OrganizationFlags),
    /// Create another organization with one project, and print its keys. They are shown only once
    Create {
        /// Name
        #[arg(long)]
        name: String,
    },
}

/// The settings of an organization.
#[derive(Debug, clap::Args)]
pub struct OrganizationFlags {
    /// Name
    #[arg(long)]
    name: Option<String>,
    /// Timezone of days, such as Europe/Berlin; can't change after the first event
    #[arg(long)]
    timezone: Option<String>,
    /// Currency of figures that span projects, such as EUR; can't change after the first event
    #[arg(long, value_name = "CODE")]
    currency: Option<String>,
    /// Value of one unit of each currency in USD, such as EUR=1.08,GBP=1.27; replaces the table, ""
    /// clears it
    #[arg(long, value_name = "RATES", value_delimiter = ',')]
    fx_rates: Option<Vec<String>>,
    /// Optional features, separated by commas, such as target_accounts; "" clears them
    #[arg(long, value_delimiter = ',')]
    capabilities: Option<Vec<String>>,
    /// Balance of Actions
    #[arg(long, value_name = "N")]
    actions_balance: Option<u64>,
}

impl OrganizationFlags {
    fn body(&self) -> Result<Body, Failure> {
        let Self { name, timezone, currency, fx_rates, capabilities, actions_balance } = self;
        Ok(Body::default()
            .set("name", name.as_deref())
            .set("timezone", timezone.as_deref())
            .set("currency", currency.as_deref())
            .numbers("fx_rates", fx_rates.as_deref().map(sent_rates).transpose()?)
            .list("capabilities", capabilities.as_deref())
            .set("actions_balance", *actions_balance))
    }
}

/// Parses rates such as `EUR=1.08`.
fn sent_rates(list: &[String]) -> Result<BTreeMap<String, Box<RawValue>>, Failure> {
    let rate = |text: &String| {
        let (code, rate) = text.split_once('=').ok_or_else(|| Failure(format!("--fx-rates: {text:?} must be like EUR=1.08")))?;
        Rate::parse(rate).map_err(|error| Failure::new(format_args!("--fx-rates: {text:?}"), error))?;
        Ok((code.trim().to_owned(), RawValue::from_string(rate.to_owned())?))
    };
    list.iter().filter(|text| !text.is_empty()).map(rate).collect()
}

impl ManagementCommand for OrganizationCommand {
    fn rights(&self) -> Rights {
        match self {
            Self::Create { .. } => Rights::Root,
            Self::Show | Self::Set(_) => Rights::Organization,
        }
    }

    fn send(&self, server: &ManagedServer) -> Result<Reply, Failure> {
        match self {
            Self::Show => server.show(PATH),
            Self::Set(flags) => server.change(PATH, &flags.body()?),
            Self::Create { name } => server.create("/organizations", &Body::default().set("name", Some(name.as_str()))),
        }
    }
}
