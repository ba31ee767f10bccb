//! Which events are interactive: those that tell of something that somebody did at their time. Only these make sessions.

use super::submission::{Submission, text};

/// The names of events that say who somebody is.
const TRAITS: [&str; 7] = ["identify", "group", "alias", "$identify", "$groupidentify", "$create_alias", "$set"];

/// Whether events of this name say who somebody is, and so are never interactive.
pub(super) fn tells_traits(name: &str) -> bool {
    TRAITS.contains(&name)
}

/// Whether the event `name` is interactive. `is_of_server`: a server sent it, or it was imported, and no visitor's agent is known.
pub(super) fn is_interactive(name: &str, submission: &Submission<'_>, is_of_server: bool) -> bool {
    let is_denied = submission.non_interaction == Some(true);
    let is_absent = |field| text(field).is_none();
    // It says nothing of a page or a device: the server reports of itself.
    let is_report = is_of_server && is_absent(submission.url.as_ref()) && is_absent(submission.screen.as_ref());
    !(tells_traits(name) || is_denied || is_report)
}
