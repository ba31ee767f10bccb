//! Events that make no session: what a program sends of itself, traits of other products, and what
//! servers report.

use crate::history::{History, Step};
use crate::rng::Rng;
use headcount_model::Json;
use std::collections::BTreeMap;

/// Tells the random numbers of these events from those of the rest, so that the other events of a
/// history stay what they were.
const PASSIVE: u64 = 0x9a55;
/// Names of traits besides `identify` and `group`, and some that only sound like it.
const TRAITS: [&str; 7] = ["alias", "$identify", "$groupidentify", "$create_alias", "$set", "Identify", "set"];
/// What stands for `true` in the field, and what does not.
const DENIALS: [&str; 8] = ["true", "true", "true", "false", "null", "\"true\"", "1", "[true]"];
const AGENT: &str = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0 Safari/537.36";

/// Whether a server sends the event, with a token: its body says so, in a field that nobody else
/// reads.
#[must_use]
pub fn is_of_server(body: &str) -> bool {
    body.contains(r#""sent_by": "server""#)
}

/// Makes some events of a history such.
pub(super) fn add_passive(history: &mut History) {
    let mut rng = Rng::new(history.seed ^ PASSIVE);
    for step in &mut history.steps {
        match step {
            Step::Track { body, .. } => *body = passive(&mut rng, body, true),
            Step::Batch { bodies, .. } => bodies.iter_mut().for_each(|body| *body = passive(&mut rng, body, false)),
            _ => {}
        }
    }
}

/// An event, perhaps as one that makes no session. Batches are sent with a public key.
fn passive(rng: &mut Rng, body: &str, is_alone: bool) -> String {
    let kind = rng.below(100);
    let Ok(Json::Object(mut fields)) = Json::parse(body) else { return body.to_owned() };
    match kind {
        0..12 => drop(fields.insert("non_interaction".to_owned(), Json::parse(rng.word(&DENIALS)).expect("JSON"))),
        // Only `identify` and `group` report what they have; others may be renamed.
        12..16 if fields.get("name").and_then(Json::text).is_some_and(|name| name == "signup" || name == "saved") => {
            fields.insert("name".to_owned(), Json::from(rng.word(&TRAITS)));
        }
        16..32 if is_alone && has_id(&fields) => of_server(rng, &mut fields),
        _ => return body.to_owned(),
    }
    Json::Object(fields).to_string()
}

fn has_id(fields: &BTreeMap<String, Json>) -> bool {
    ["user_id", "anonymous_id"].iter().any(|name| fields.get(*name).and_then(Json::text).is_some_and(|id| !id.is_empty()))
}

/// Makes it an event of a server, which mostly says nothing of a page.
fn of_server(rng: &mut Rng, fields: &mut BTreeMap<String, Json>) {
    fields.insert("sent_by".to_owned(), Json::from("server"));
    match rng.below(8) {
        0 => drop(fields.insert("user_agent".to_owned(), Json::from(AGENT))),
        1 => {}
        2 => {
            fields.insert("user_agent".to_owned(), Json::from(""));
            fields.insert("url".to_owned(), Json::Null);
            fields.remove("screen");
        }
        _ => ["url", "screen"].into_iter().for_each(|name| drop(fields.remove(name))),
    }
}
