//! Which events are interactive: those that tell of something that somebody did at their time. Only these make sessions.

use super::admission::{Client, Sender};
use super::submission::{Submission, text};
use crate::agent::Agent;

/// The names of events that say who somebody is.
const TRAITS: [&str; 7] = ["identify", "group", "alias", "$identify", "$groupidentify", "$create_alias", "$set"];

/// Whether events of this name say who somebody is, and so are never interactive.
pub(super) fn tells_traits(name: &str) -> bool {
    TRAITS.contains(&name)
}

/// Whether the event `name` is interactive.
pub(super) fn is_interactive(name: &str, submission: &Submission<'_>, client: &Client<'_>) -> bool {
    let is_denied = submission.non_interaction == Some(true);
    !(tells_traits(name) || is_denied || is_report_of_server(submission, client))
}

/// Whether a server reports of itself: an event that was sent with a token, or imported, and says nothing of a page or a device.
fn is_report_of_server(submission: &Submission<'_>, client: &Client<'_>) -> bool {
    let is_absent = |field| text(field).is_none();
    // An import may have what another product found in the user agent, in its place.
    let has_agent = client.user_agent.is_some_and(|agent| !agent.is_empty()) || *client.agent != Agent::default();
    client.sender == Sender::Server && !has_agent && is_absent(submission.url.as_ref()) && is_absent(submission.screen.as_ref())
}
