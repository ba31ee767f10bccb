//! The bodies of events.

use super::addresses::{REFERRERS, URLS};
use crate::rng::Rng;
use crate::times::Times;

/// Users by name; a user id that is an address is its own e-mail address.
const NAMES: [&str; 4] = ["ada", "ben", "cleo", "dana"];
const ADDRESSES: [&str; 3] = ["mia@umbrella.co", "Nora@Gmail.com", "owen@acme.com"];
/// Anonymous ids, shared between users as devices are.
const ANONYMOUS: [&str; 4] = ["a1", "a2", "tablet", "kiosk"];
/// The anonymous ids of users who share their devices.
const SHARED: [&str; 2] = ["tablet", "kiosk"];
/// The anonymous ids of a single user.
const DEVICES: [&str; 8] = ["a1", "a2", "tablet", "kiosk", "phone", "watch", "car", "tv"];
/// Addresses as clients send them: company and free mail, in any case, with surrounding space.
const EMAILS: [&str; 6] =
    ["ada@acme.com", " Ben@Globex.io ", "TEAM@acme.com", "team@acme.com ", "cleo@gmail.com", "Dana@Outlook.com"];
const COMPANIES: [&str; 6] = ["acct_1", "acct_1", "acct_2", "acme.com", "https://www.Globex.io/about", "Umbrella.co."];
const DOMAINS: [&str; 4] = ["hooli.dev", "https://ACME.com/", "http://www.umbrella.co:80/x", "globex.io"];
const TEAMS: [(&str, &str); 4] = [("team", "t1"), ("team", "t2"), ("team", "red one"), ("class", "t1")];
const TITLES: [&str; 5] = ["Acme", "Umbrella", "Zeta", "acme", ""];
const NAMES_OF_EVENTS: [&str; 10] =
    ["pageview", "pageview", "pageview", "page", "$pageview", "order", "order", "refund", "signup", "saved"];
const PLANS: [&str; 12] = [
    r#""pro""#,
    r#""pro""#,
    r#""free""#,
    "null",
    r#"{"name": "pro"}"#,
    r#""Pro""#,
    r#""""#,
    "5",
    "5.0",
    r#""5""#,
    "true",
    r#""ΟΔΟΣ""#,
];
/// Numbers of all sizes; sums of the largest ones are too large, or are not if they cancel each
/// other.
const SEATS: [&str; 23] = [
    "2",
    "2.50",
    "3.1234565",
    "10",
    "0.1",
    "0.2000005",
    "-1.0000015",
    r#""7""#,
    "true",
    "2e0",
    "0.0000005",
    "-0.0000004",
    "1.2e-8",
    "9007199254740993",
    "9007199254740992",
    "1e21",
    "100000000000000000000",
    "9e31",
    "-9e31",
    "1e32",
    "[2]",
    "null",
    "-0",
];
const REFUSED: [(&str, &str); 8] = [
    ("timestamp", r#""1989-12-31T23:59:59Z""#),
    ("timestamp", r#""yesterday""#),
    ("timestamp", "631151999"),
    ("timestamp", "true"),
    ("timestamp", "{}"),
    ("name", "null"),
    ("name", "[]"),
    ("name", r#""""#),
];
/// What costs a detail of an event, and never the event.
const REPAIRED: [(&str, &str); 47] = [
    ("value", "1.0000001"),
    ("value", "3.3000000000000003"),
    ("value", r#""49.90""#),
    ("value", r#"" +0.10 ""#),
    ("value", r#""-.5""#),
    ("value", r#""12,50 €""#),
    ("value", r#""""#),
    ("value", "true"),
    ("value", "[5]"),
    ("value", "1000000000001"),
    ("value", "1000000000000.0000001"),
    ("currency", r#""EURO""#),
    ("currency", r#"" eur ""#),
    ("currency", "978"),
    ("currency", "{}"),
    ("group_type", r#""Team X""#),
    ("group_type", "5"),
    ("group_type", "false"),
    ("group_id", "4711"),
    ("group_id", "[]"),
    ("user_id", "4711"),
    ("user_id", r#""4711""#),
    ("user_id", "{}"),
    ("user_id", "false"),
    ("user_id", r#""undefined""#),
    ("user_id", r#"" NULL ""#),
    ("user_id", r#""[object Object]""#),
    ("user_id", r#""00000000-0000-0000-0000-000000000000""#),
    ("user_id", "0"),
    ("anonymous_id", r#""(not set)""#),
    ("anonymous_id", r#""anonymous""#),
    ("anonymous_id", "[1]"),
    ("userId", r#""ada""#),
    ("anonymousId", r#""a1""#),
    ("name", "404"),
    ("url", "5"),
    ("url", "[]"),
    ("referrer", "{}"),
    ("language", "7"),
    ("notify", r#""yes""#),
    ("_acOverrides", r#""partner""#),
    ("_acOverrides", r#"{"source": 5, "medium": []}"#),
    ("privacy_categories", "true"),
    ("ps", "[]"),
    ("channel", r#""\ud83d""#),
    ("screen", r#""\ud83d\ude00\ude00""#),
    ("metadata", r#"{"plan": "\udc00", "a": {"b": [[[[[[[1]]]]]], 2]}, "seats": 2}"#),
];
/// What is cut, trimmed or left out since it is too long: a field, what stands before and after its
/// many letters, and how many.
const LONG: [(&str, &str, &str, usize); 8] = [
    ("url", "https://shop.example/long?utm_source=news&x=", "", 4_200),
    ("url", "https://shop.example/", "", 4_200),
    ("user_id", "", "", 4_097),
    ("group_id", "", "", 513),
    ("group_id", "", "", 512),
    ("language", "é", "", 4_100),
    ("consent_source", "", "", 4_096),
    ("referrer", "https://www.google.com/", "", 5_000),
];

/// Generates related bodies.
#[derive(Debug)]
pub(super) struct Bodies {
    live: bool,
    now_ms: i64,
    /// Whether there is a single user, into whom several anonymous ids with a past are merged, and
    /// few companies.
    few: bool,
    /// Whether users share few devices, on which they come and go.
    shares: bool,
    /// The ids, instants and projects of earlier events.
    made: Vec<Made>,
}

#[derive(Clone, Debug)]
struct Made {
    project: usize,
    user: Option<String>,
    anonymous: Option<String>,
    at_ms: i64,
}

/// Fields of a JSON object, in writing order.
#[derive(Default)]
struct Fields(Vec<(&'static str, String)>);

impl Fields {
    /// Adds a field with a JSON value.
    fn add(&mut self, name: &'static str, json: impl Into<String>) {
        self.0.push((name, json.into()));
    }

    /// Adds a text field.
    fn text(&mut self, name: &'static str, text: &str) {
        self.add(name, format!("\"{text}\""));
    }

    /// Replaces the value of a field, if present.
    fn replace(&mut self, name: &'static str, json: &str) {
        self.0.retain(|(field, _)| *field != name);
        self.add(name, json);
    }

    fn written(&self) -> String {
        let fields: Vec<_> = self.0.iter().map(|(name, json)| format!("\"{name}\": {json}")).collect();
        format!("{{{}}}", fields.join(", "))
    }
}

impl Bodies {
    pub(super) fn new(rng: &mut Rng, live: bool, now_ms: i64, shares: bool) -> Bodies {
        let few = rng.chance(35) && !shares;
        Bodies { live, now_ms, few, shares, made: Vec::new() }
    }

    /// Generates the next event of a project.
    pub(super) fn next(&mut self, rng: &mut Rng, times: &mut Times, project: usize) -> String {
        let mut fields = Fields::default();
        // Events with traits have unique instants, so that the latest one is well defined.
        let kind = rng.below(100);
        let tells = kind < 22;
        let made = self.who_and_when(rng, times, project, tells);
        let few = self.few;
        match kind {
            0..12 => identify(rng, &mut fields, &made),
            12..22 => group(rng, &mut fields, few),
            _ => visit(rng, &mut fields, &made, few),
        }
        ids(rng, &mut fields, &made);
        self.timestamp(rng, &mut fields, made.at_ms);
        if rng.chance(18) {
            fields.text("external_id", rng.word(&["o-1", "o-2", "o-3", "o-4", "o-5", "o-6", "o-7", ""]));
        }
        consent(rng, &mut fields);
        if rng.chance(2) {
            let &(name, json) = rng.pick(&REFUSED);
            fields.replace(name, json);
        }
        repaired(rng, &mut fields, made.at_ms);
        self.made.push(made);
        fields.written()
    }

    fn who_and_when(&self, rng: &mut Rng, times: &mut Times, project: usize, tells: bool) -> Made {
        let earlier: Vec<_> = self.made.iter().filter(|made| made.project == project).collect();
        if !earlier.is_empty() && !tells && rng.chance(45) {
            let before = *rng.pick(&earlier);
            let at_ms = if rng.chance(15) { before.at_ms } else { Times::near(rng, before.at_ms) };
            // Events with a timestamp happened before the run.
            let at_ms = at_ms.min(self.now_ms - 60_000);
            return Made { at_ms, ..before.clone() };
        }
        let names = if self.few { &NAMES[..1] } else { &NAMES[..] };
        let user = match rng.below(10) {
            // The single user appears late.
            0..6 if self.few && self.made.len() < 20 => None,
            0..4 => Some((rng.word(names)).to_owned()),
            4..6 if !self.few => Some((rng.word(&ADDRESSES)).to_owned()),
            _ => None,
        };
        let knows = match user {
            _ if self.shares => 95,
            Some(_) if self.few => 40,
            Some(_) => 45,
            None => 85,
        };
        let devices = match (self.few, self.shares) {
            (_, true) => &SHARED[..],
            (true, false) => &DEVICES[..],
            (false, false) => &ANONYMOUS[..],
        };
        let anonymous = rng.chance(knows).then(|| (rng.word(devices)).to_owned());
        let at_midnight = !tells && rng.chance(15);
        let at_ms = if at_midnight { times.midnight(rng, project) } else { times.fresh(rng) };
        Made { project, user, anonymous, at_ms }
    }

    fn timestamp(&self, rng: &mut Rng, fields: &mut Fields, at_ms: i64) {
        if !self.live || !rng.chance(12) {
            return fields.add("timestamp", Times::spelled(rng, at_ms));
        }
        let days_ahead = *rng.pick(&[2, 40]);
        match rng.below(4) {
            0 => {}
            1 => fields.add("timestamp", "null"),
            _ => fields.add("timestamp", Times::spelled(rng, self.now_ms + days_ahead * 24 * 60 * 60 * 1000)),
        }
    }
}

fn ids(rng: &mut Rng, fields: &mut Fields, made: &Made) {
    for (name, id) in [("user_id", &made.user), ("anonymous_id", &made.anonymous)] {
        match id {
            Some(id) => fields.text(name, id),
            None if rng.chance(10) => fields.add(name, "null"),
            None if rng.chance(10) => fields.text(name, ""),
            None => {}
        }
    }
}

/// Spoils a detail, or a few.
fn repaired(rng: &mut Rng, fields: &mut Fields, at_ms: i64) {
    while rng.chance(12) {
        let &(name, json) = rng.pick(&REPAIRED);
        fields.replace(name, json);
        if name == "group_type" {
            fields.replace("group_id", "\"t1\"");
        }
    }
    match rng.below(60) {
        0 => {
            let &(name, before, after, letters) = rng.pick(&LONG);
            fields.replace(name, &format!("\"{before}{}{after}\"", "x".repeat(letters)));
        }
        1 => {
            let keys: Vec<_> = (0..140).map(|key| format!("\"k{key}\": {key}")).collect();
            fields.replace("metadata", &format!("{{\"plan\": \"pro\", {}, \"seats\": 9}}", keys.join(", ")));
        }
        2 => fields.replace("timestamp", &(at_ms / 1000).to_string()),
        3 => fields.replace("timestamp", &format!("\"{at_ms}\"")),
        _ => {}
    }
}

fn is_address(made: &Made) -> bool {
    made.user.as_deref().is_some_and(|user| user.contains('@'))
}

fn identify(rng: &mut Rng, fields: &mut Fields, made: &Made) {
    fields.text("name", "identify");
    // A user whose user_id is an address reports no other address.
    let email = if is_address(made) || rng.chance(15) { "" } else { rng.word(&EMAILS) };
    fields.add("metadata", format!(r#"{{"email": "{email}", "plan": {}}}"#, rng.word(&PLANS)));
}

fn group(rng: &mut Rng, fields: &mut Fields, few: bool) {
    fields.text("name", "group");
    let mut traits = Vec::new();
    if rng.chance(60) {
        traits.push(format!(r#""name": "{}""#, rng.word(&TITLES)));
    }
    if rng.chance(70) {
        company(rng, fields, few);
        if rng.chance(50) {
            fields.replace("group_id", rng.word(&[r#""acct_1""#, r#""acct_2""#]));
        }
        if rng.chance(70) {
            traits.push(format!(r#""domain": "{}""#, rng.word(&DOMAINS)));
        }
    } else {
        team(rng, fields);
    }
    fields.add("metadata", format!("{{{}}}", traits.join(", ")));
}

fn company(rng: &mut Rng, fields: &mut Fields, few: bool) {
    let companies = if few { &COMPANIES[..3] } else { &COMPANIES[..] };
    fields.text("group_id", rng.word(companies));
    if rng.chance(50) {
        fields.text("group_type", "company");
    }
}

fn team(rng: &mut Rng, fields: &mut Fields) {
    let &(kind, id) = rng.pick(&TEAMS);
    fields.text("group_type", kind);
    fields.text("group_id", id);
}

fn visit(rng: &mut Rng, fields: &mut Fields, made: &Made, few: bool) {
    let name = rng.word(&NAMES_OF_EVENTS);
    fields.text("name", name);
    match rng.below(10) {
        0..2 => company(rng, fields, few),
        2 => team(rng, fields),
        3 => fields.text("group_id", ""),
        _ => {}
    }
    if name == "order" || name == "refund" {
        money(rng, fields, name == "refund");
    }
    if rng.chance(60) {
        fields.text("url", rng.word(&URLS));
    } else if rng.chance(20) {
        fields.text("hostname", rng.word(&["shop.example", "blog.example", "one.github.io", "10.0.0.2", ""]));
    }
    if rng.chance(30) {
        fields.text("referrer", rng.word(&REFERRERS));
    }
    if rng.chance(6) {
        let overrides = [r#"{"source": "Partner", "medium": "Affiliate"}"#, r#"{"channel": "Audio"}"#, "null"];
        fields.add("_acOverrides", rng.word(&overrides));
    }
    if rng.chance(20) {
        fields.text("language", rng.word(&["en", "de-DE", ""]));
        fields.text("screen", rng.word(&["1920x1080", "390x844"]));
    }
    if rng.chance(10) {
        fields.text("channel", rng.word(&["sales", "alerts"]));
    }
    metadata(rng, fields, made);
}

fn metadata(rng: &mut Rng, fields: &mut Fields, made: &Made) {
    let mut entries = Vec::new();
    if rng.chance(30) {
        entries.push(format!(r#""plan": {}"#, rng.word(&PLANS)));
    }
    if rng.chance(30) {
        entries.push(format!(r#""seats": {}"#, rng.word(&SEATS)));
    }
    if rng.chance(15) {
        entries.push((rng.word(&[r#""a.b": 1"#, r#""a": {"b": 2}"#, r#""a": {"b": "1"}, "a.b": "x""#])).to_owned());
    }
    if rng.chance(8) {
        // Only `group` events report these.
        entries.push(format!(r#""name": "{}", "domain": "{}""#, rng.word(&TITLES), rng.word(&DOMAINS)));
    }
    if !is_address(made) && rng.chance(4) {
        entries.push(format!(r#""email": "{}""#, rng.word(&EMAILS)));
    }
    match rng.below(10) {
        _ if !entries.is_empty() => fields.add("metadata", format!("{{{}}}", entries.join(", "))),
        0 => fields.add("metadata", "null"),
        1 => fields.add("metadata", "[1, 2]"),
        _ => {}
    }
}

fn money(rng: &mut Rng, fields: &mut Fields, is_refund: bool) {
    if rng.chance(12) {
        // Zero, in a currency that needs no rate.
        return fields.add("value", rng.word(&["0", "0.00", "-0", "null"]));
    }
    if is_refund && rng.chance(15) {
        // Zero in any other currency, but still a refund.
        fields.add("value", "-0.000001");
        return fields.text("currency", "INR");
    }
    let orders = ["10", "2.50", "1e2", "0.000001", "19.99", "1234567.891", "0.1", "0.2", "3E0", "33.333333"];
    let refunds = ["-5", "-0.5", "-1e1", "-19.99", "-0.123456"];
    fields.add("value", if is_refund { rng.word(&refunds) } else { rng.word(&orders) });
    if rng.chance(60) {
        fields.text("currency", rng.word(&["USD", "usd", "EUR", "eur", "Inr", "CHF", "chf", "JPY", "GBP", ""]));
    }
}

fn consent(rng: &mut Rng, fields: &mut Fields) {
    match rng.below(40) {
        0 => fields.text("privacy_categories", "functional"),
        1 => fields.text("pc", ""),
        2 => {
            fields.text("privacy_categories", "functional,analytics");
            fields.text("pc", "functional");
        }
        3 => {
            fields.add("privacy_categories", "null");
            fields.text("pc", "functional, marketing");
        }
        4 => fields.text("ps", rng.word(&["gpc", "dnt", "", " GPC", "gpp:DBAA, Dnt ", "gpp:gpc"])),
        5 => {
            fields.text("privacy_signals", "");
            fields.text("ps", rng.word(&["", "gpc"]));
        }
        6 => fields.text("privacy_categories", rng.word(&["marketing, Analytics ", "ANALYTICS", "analytics2", ","])),
        _ => {}
    }
    if rng.chance(5) {
        fields.text("consent_source", "banner");
    }
}
