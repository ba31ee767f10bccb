//! The sent events: templates of realistic size and content, patched for each request.

use std::ops::Range;

use super::spread::UserRange;

/// The number of templates.
const VARIANTS: usize = 64;
/// One in this many events is an order.
pub(crate) const ORDER_EVERY: usize = 16;
/// One in this many events is the first of a visit: only its URL has a campaign, and only its
/// referrer is another site.
const LANDING_EVERY: usize = 4;
/// The value of every order, in cents.
pub(crate) const ORDER_CENTS: u64 = 1_999;
const USER_PLACE: &str = "#########";
const NUMBER_PLACE: &str = "@@@@@@@@@@@@";

/// The JSON of an event, with placeholders for the numbers of its user and itself.
#[derive(Debug, Clone)]
struct Template {
    json: Vec<u8>,
    users: Vec<Range<usize>>,
    numbers: Vec<Range<usize>>,
    is_order: bool,
}

/// Writes events.
#[derive(Debug, Clone)]
pub(crate) struct EventWriter {
    templates: Vec<Template>,
    prefix: String,
}

impl EventWriter {
    /// Creates a writer of events whose user ids begin with `prefix`. With `external_ids`, each
    /// event has an `external_id`.
    pub(crate) fn new(prefix: &str, external_ids: bool) -> Self {
        let templates = (0..VARIANTS).map(|variant| Template::new(prefix, variant, external_ids)).collect();
        Self { templates, prefix: prefix.to_owned() }
    }

    /// The id of a user.
    pub(crate) fn user_id(&self, user: u64) -> String {
        format!("{}-u{user:09}", self.prefix)
    }

    /// Returns the user of the event with this number. Users come in mixed order, and each comes
    /// once before any repeats.
    pub(crate) fn user(number: u64, users: UserRange) -> u64 {
        // The factor is coprime to most numbers of users; a repetition is harmless.
        users.start + number.wrapping_mul(7_919) % users.size.max(1)
    }

    /// Whether the event with this number is an order.
    pub(crate) fn is_order(&self, number: u64) -> bool {
        self.template(number).is_some_and(|template| template.is_order)
    }

    /// Writes the event with this number, of a project with these users.
    pub(crate) fn write(&self, number: u64, users: UserRange, body: &mut Vec<u8>) {
        let Some(template) = self.template(number) else { return };
        let start = body.len();
        body.extend_from_slice(&template.json);
        let user = Self::user(number, users);
        for place in &template.users {
            write_digits(user, &mut body[start + place.start..start + place.end]);
        }
        for place in &template.numbers {
            write_digits(number, &mut body[start + place.start..start + place.end]);
        }
    }

    fn template(&self, number: u64) -> Option<&Template> {
        self.templates.get(usize::try_from(number % VARIANTS as u64).unwrap_or(0))
    }
}

/// Writes a decimal number with leading zeros.
pub(crate) fn write_digits(number: u64, place: &mut [u8]) {
    let mut rest = number;
    for digit in place.iter_mut().rev() {
        *digit = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
    }
}

impl Template {
    fn new(prefix: &str, variant: usize, external_ids: bool) -> Self {
        const AGENTS: [(&str, &str); 4] =
            [("Chrome", "Mac OS X"), ("Firefox", "Windows"), ("Safari", "iOS"), ("Edge", "Windows")];
        const CAMPAIGNS: [&str; 4] = ["spring", "summer", "autumn", "winter"];
        let is_order = variant.is_multiple_of(ORDER_EVERY);
        let (browser, os) = AGENTS[variant % 4];
        let page = format!("https://app.example.com/docs/section-{}/page-{variant}", variant % 20);
        let (url, referrer) = if variant % LANDING_EVERY == 1 {
            let campaign = CAMPAIGNS[variant / 4 % 4];
            (
                format!("{page}?utm_source=newsletter&utm_medium=email&utm_campaign={campaign}"),
                "https://www.google.com/".to_owned(),
            )
        } else {
            let referrer =
                format!("https://app.example.com/docs/section-{}/page-{}?sort=newest&page=2", (variant + 7) % 20, variant + 7);
            (page, referrer)
        };
        let mut event = serde_json::json!({
            "name": if is_order { "purchase" } else { "pageview" },
            "user_id": format!("{prefix}-u{USER_PLACE}"),
            "anonymous_id": format!("{prefix}-a{USER_PLACE}"),
            "url": url,
            "hostname": "app.example.com",
            "referrer": referrer,
            "screen": "1728x1117",
            "language": "en-US",
            "group_type": "company",
            "group_id": format!("customer-{}.com", variant % 50),
            "metadata": {
                "browser": browser, "os": os, "device": "desktop", "country": "DE", "plan": "team", "session_id": format!("s{variant:016x}"),
                "experiment": "b", "position": variant, "is_first": false, "load_ms": 100 + variant * 7
            },
        });
        if let Some(fields) = event.as_object_mut() {
            if is_order {
                fields.insert("value".into(), serde_json::json!(ORDER_CENTS as f64 / 100.0));
                fields.insert("currency".into(), "USD".into());
            }
            if external_ids {
                fields.insert("external_id".into(), format!("{prefix}-e{NUMBER_PLACE}").into());
            }
        }
        let json = event.to_string();
        let places = |place: &str| json.match_indices(place).map(|(at, found)| at..at + found.len()).collect();
        Self { users: places(USER_PLACE), numbers: places(NUMBER_PLACE), json: json.into_bytes(), is_order }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: UserRange = UserRange { start: 500, size: 1_000 };

    fn written(writer: &EventWriter, number: u64) -> (serde_json::Value, usize) {
        let mut body = Vec::new();
        writer.write(number, USERS, &mut body);
        (serde_json::from_slice(&body).unwrap(), body.len())
    }

    #[test]
    fn events_are_json_of_realistic_size() {
        let writer = EventWriter::new("run", false);
        let (mut sizes, mut orders, mut landings) = (0, 0, 0);
        for number in 0..640 {
            let (event, size) = written(&writer, number);
            let user = EventWriter::user(number, USERS);
            assert!((500..1_500).contains(&user));
            assert_eq!(event["user_id"], writer.user_id(user));
            assert_eq!(event["name"] == "purchase", writer.is_order(number));
            assert!(event.get("external_id").is_none());
            orders += usize::from(writer.is_order(number));
            landings += usize::from(event["url"].as_str().unwrap().contains("utm_campaign="));
            sizes += size;
        }
        assert_eq!((orders, landings), (640 / ORDER_EVERY, 640 / LANDING_EVERY));
        assert!((520..620).contains(&(sizes / 640)), "{}", sizes / 640);
    }

    #[test]
    fn external_ids_are_those_of_the_numbers() {
        let writer = EventWriter::new("run", true);
        let ids: std::collections::BTreeSet<String> =
            (0..200).map(|number| written(&writer, number).0["external_id"].as_str().unwrap().to_owned()).collect();
        assert_eq!(ids.len(), 200);
        assert_eq!(written(&writer, 77).0, written(&writer, 77).0);
    }
}
