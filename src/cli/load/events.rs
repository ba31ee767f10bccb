//! The events that are sent: templates of realistic size and content, patched for each request.

use std::ops::Range;

/// The number of templates.
const VARIANTS: usize = 64;
/// One in this many events is an order.
pub(crate) const ORDER_EVERY: usize = 16;
/// The value of every order, in cents.
pub(crate) const ORDER_CENTS: u64 = 1_999;
const USER_DIGITS: usize = 9;

/// The JSON of an event, with placeholders for the number of its user.
#[derive(Debug, Clone)]
struct Template {
    json: Vec<u8>,
    users: Vec<Range<usize>>,
    is_order: bool,
}

/// Writes request bodies.
#[derive(Debug, Clone)]
pub(crate) struct Bodies {
    templates: Vec<Template>,
    users: u64,
    batch: usize,
}

/// The content of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct BodyContent {
    /// The number of events.
    pub(crate) events: u64,
    /// The number of orders among them.
    pub(crate) orders: u64,
}

impl Bodies {
    /// Creates bodies of `batch` events (0 for a single event) by `users` users whose ids begin with `prefix`.
    pub(crate) fn new(prefix: &str, users: u64, batch: usize) -> Self {
        let templates = (0..VARIANTS).map(|variant| Template::new(prefix, variant)).collect();
        Self { templates, users: users.max(1), batch }
    }

    /// Returns the user of the event with this number. Users come in mixed order, each once before any repeats.
    pub(crate) fn user(&self, number: u64) -> u64 {
        // The factor is coprime to most numbers of users; a repetition is harmless.
        number.wrapping_mul(7_919) % self.users
    }

    /// Writes the body of the request that begins with event `number`, and returns its content.
    pub(crate) fn write(&self, number: u64, body: &mut Vec<u8>) -> BodyContent {
        if self.batch == 0 {
            return self.write_event(number, body);
        }
        let mut content = BodyContent::default();
        body.extend_from_slice(b"{\"events\":[");
        for offset in 0..self.batch as u64 {
            if offset > 0 {
                body.push(b',');
            }
            let one = self.write_event(number + offset, body);
            content.events += one.events;
            content.orders += one.orders;
        }
        body.extend_from_slice(b"]}");
        content
    }

    fn write_event(&self, number: u64, body: &mut Vec<u8>) -> BodyContent {
        let variant = usize::try_from(number % VARIANTS as u64).unwrap_or(0);
        let template = &self.templates[variant];
        let start = body.len();
        body.extend_from_slice(&template.json);
        let user = self.user(number);
        for place in &template.users {
            let digits = &mut body[start + place.start..start + place.end];
            let mut rest = user;
            for digit in digits.iter_mut().rev() {
                *digit = b'0' + u8::try_from(rest % 10).unwrap_or(0);
                rest /= 10;
            }
        }
        BodyContent { events: 1, orders: u64::from(template.is_order) }
    }
}

impl Template {
    fn new(prefix: &str, variant: usize) -> Self {
        const PLACE: &str = "#########";
        const AGENTS: [(&str, &str); 4] =
            [("Chrome", "Mac OS X"), ("Firefox", "Windows"), ("Safari", "iOS"), ("Edge", "Windows")];
        const CAMPAIGNS: [&str; 4] = ["spring", "summer", "autumn", "winter"];
        let is_order = variant.is_multiple_of(ORDER_EVERY);
        let (browser, os) = AGENTS[variant % 4];
        let mut event = serde_json::json!({
            "name": if is_order { "purchase" } else { "pageview" },
            "user_id": format!("{prefix}-u{PLACE}"),
            "anonymous_id": format!("{prefix}-a{PLACE}"),
            "url": format!("https://app.example.com/docs/section-{}/page-{variant}?utm_source=newsletter&utm_medium=email&utm_campaign={}", variant % 20, CAMPAIGNS[variant / 4 % 4]),
            "hostname": "app.example.com",
            "referrer": "https://www.google.com/",
            "screen": "1728x1117",
            "language": "en-US",
            "group_type": "company",
            "group_id": format!("customer-{}.com", variant % 50),
            "metadata": {
                "browser": browser, "os": os, "device": "desktop", "country": "DE", "plan": "team", "session_id": format!("s{variant:016x}"),
                "experiment": "b", "position": variant, "is_first": false, "load_ms": 100 + variant * 7
            },
        });
        if is_order && let Some(fields) = event.as_object_mut() {
            fields.insert("value".into(), serde_json::json!(ORDER_CENTS as f64 / 100.0));
            fields.insert("currency".into(), "USD".into());
        }
        let json = event.to_string();
        let users = json.match_indices(PLACE).map(|(at, _)| at..at + USER_DIGITS).collect();
        Self { json: json.into_bytes(), users, is_order }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_json_of_realistic_size() {
        let bodies = Bodies::new("run", 1_000, 0);
        let mut sizes = 0;
        let mut orders = 0;
        for number in 0..640 {
            let mut body = Vec::new();
            orders += bodies.write(number, &mut body).orders;
            let event: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(event["user_id"], format!("run-u{:09}", bodies.user(number)));
            sizes += body.len();
        }
        assert_eq!(orders, 640 / ORDER_EVERY as u64);
        assert!((520..620).contains(&(sizes / 640)), "{}", sizes / 640);
        let mut batch = Vec::new();
        assert_eq!(Bodies::new("run", 10, 32).write(0, &mut batch), BodyContent { events: 32, orders: 2 });
        let batch: serde_json::Value = serde_json::from_slice(&batch).unwrap();
        assert_eq!(batch["events"].as_array().unwrap().len(), 32);
    }
}
