//! What is sent by itself, and the channels that take it.

#![forbid(unsafe_code)]

mod channel;
mod channels;
mod feature;
mod message;
mod sealed;
mod settings;

use headcount_api::endpoints;
use headcount_api::endpoints::Endpoints;

pub use feature::install;
pub use settings::PushSettings;

/// The endpoints.
pub const ENDPOINTS: Endpoints = endpoints! {
    channels => list: Organization(Admin, Admin);
    channels => create: Organization(Admin, Admin);
    channels => change: Organization(Admin, Admin);
    channels => remove: Organization(Admin, Admin);
    channels => test: Organization(Admin, Admin);
};
