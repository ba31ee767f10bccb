//! What is sent by itself: alerts, and the channels that take their messages, chats and e-mail.

#![forbid(unsafe_code)]

mod alert;
mod alert_message;
mod alert_preview;
mod alert_state;
mod alert_values;
mod alerts;
mod channel;
mod channels;
mod condition;
mod evaluation;
mod evaluator;
mod feature;
mod mail;
mod mail_pages;
mod message;
mod pushed;
mod recipients;
mod sealed;
mod settings;

#[cfg(feature = "cluster")]
use alert_state::{AlertState, KIND};
#[cfg(feature = "cluster")]
use headcount_actors::{MovedKind, plain_documents};
use headcount_api::endpoints;
use headcount_api::endpoints::Endpoints;

pub use feature::install;
pub use mail::MailSettings;
pub use settings::PushSettings;

/// The states of alerts of an installation that moves into a cluster.
#[cfg(feature = "cluster")]
pub const MOVED: MovedKind =
    MovedKind { kind: KIND, name: "states_of_alerts", read: |from| plain_documents::<AlertState>(from, KIND) };

/// The endpoints.
pub const ENDPOINTS: Endpoints = endpoints! {
    channels => list: Organization(Admin, Admin);
    channels => create: Organization(Admin, Admin);
    channels => change: Organization(Admin, Admin);
    channels => remove: Organization(Admin, Admin);
    channels => test: Organization(Admin, Admin);
    mail_pages => show: Open;
    mail_pages => answer: Open;
    alerts => list: Project(Admin, Admin);
    alerts => create: Project(Admin, Admin);
    alerts => change: Project(Admin, Admin);
    alerts => remove: Project(Admin, Admin);
    alert_preview => preview: Project(Admin, Admin), ProjectOwner(Reads);
};
