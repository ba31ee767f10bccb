//! Decides which events are interactive: they report something that a person did at their time.
//! Only these make sessions.

use super::submission::{Submission, text};

/// The names of events that describe a person or a group.
const TRAITS: [&str; 7] = ["identify", "group", "alias", "$identify", "$groupidentify", "$create_alias", "$set"];

/// Whether events of this name describe a person or a group. Such events are never interactive.
pub(super) fn tells_traits(name: &str) -> bool {
    TRAITS.contains(&name)
}

/// Whether the event `name` is interactive. `is_of_server`: a server or an import sent it, and the
/// visitor's agent is unknown.
pub(super) fn is_interactive(name: &str, submission: &Submission<'_>, is_of_server: bool) -> bool {
    let is_denied = submission.non_interaction == Some(true);
    let is_absent = |field| text(field).is_none();
    // Without a page and a device, the server reports its own action.
    let is_report = is_of_server && is_absent(submission.url.as_ref()) && is_absent(submission.screen.as_ref());
    !(tells_traits(name) || is_denied || is_report)
}
