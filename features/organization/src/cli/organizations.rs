//! `headcount organization`.

use std::collections::BTreeMap;

use headcount_api::command::failure::Failure;
use headcount_api::command::managed_server::ManagedServer;
use headcount_api::command::request::{Body, Reply};
use headcount_api::command::{ManagementCommand, Rights};
use headcount_domain::money::Rate;
use serde_json::value::RawValue;

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
            .numbers("fx_rates", fx_rates.as_deref().map(rates).transpose()?)
            .list("capabilities", capabilities.as_deref())
            .set("actions_balance", *actions_balance))
    }
}

/// Parses rates such as `EUR=1.08`.
fn rates(list: &[String]) -> Result<BTreeMap<String, Box<RawValue>>, Failure> {
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
