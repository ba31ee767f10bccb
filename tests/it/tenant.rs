//! An organization of its own on a server that others use too.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use headcount_model::Json;
use headcount_model::subject::{Credential, Method, Request, Subject};
use serde_json::{Value, json};

use crate::client::{Answer, Call};
use crate::server::TestServer;
use crate::wrong_clock::WrongClock;

/// What a usual browser says that it is.
pub(crate) const BROWSER: &str =
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0 Safari/537.36";

/// The windows of [`Tenant::metrics`] and [`Tenant::users`]: wide enough for every event that a
/// test sends.
const EVER: (&str, &str) = ("2020-01-01", "2028-12-31");

/// An organization with one project, and its owner's token.
pub(crate) struct Tenant {
    pub(crate) server: Arc<TestServer>,
    pub(crate) organization: String,
    pub(crate) project: String,
    pub(crate) key: String,
    pub(crate) token: String,
}

/// A project of a tenant.
pub(crate) struct Project {
    pub(crate) id: String,
    pub(crate) key: String,
}

impl Tenant {
    /// A new organization on the shared server.
    pub(crate) fn new() -> Tenant {
        Tenant::on(&TestServer::shared())
    }

    /// A new organization on this server.
    pub(crate) fn on(server: &Arc<TestServer>) -> Tenant {
        static NAMES: AtomicUsize = AtomicUsize::new(0);
        let name = format!("tenant {}", NAMES.fetch_add(1, Ordering::Relaxed));
        let call = Call::post("/organizations").bearer(server.initial("root_token")).json(&json!({ "name": name }));
        let made = server.send(&call);
        assert_eq!(made.status, 201, "{}", made.text());
        Tenant {
            server: Arc::clone(server),
            organization: made.field("organization_id"),
            project: made.field("project_id"),
            key: made.field("public_key"),
            token: made.field("api_token"),
        }
    }

    /// The same one, for another thread.
    pub(crate) fn same(&self) -> Tenant {
        Tenant {
            server: Arc::clone(&self.server),
            organization: self.organization.clone(),
            project: self.project.clone(),
            key: self.key.clone(),
            token: self.token.clone(),
        }
    }

    /// A new organization with every capability.
    pub(crate) fn capable() -> Tenant {
        let tenant = Tenant::new();
        tenant.patch("/organization", &json!({"capabilities": ["target_accounts"]})).ok(200);
        tenant
    }

    pub(crate) fn send(&self, call: Call) -> Answer {
        self.server.send(&call)
    }

    /// Asks as the owner.
    pub(crate) fn get(&self, target: &str) -> Answer {
        self.send(Call::get(target).bearer(&self.token))
    }

    /// Posts as the owner.
    pub(crate) fn post(&self, target: &str, body: &Value) -> Answer {
        self.send(Call::post(target).bearer(&self.token).json(body))
    }

    /// Patches as the owner.
    pub(crate) fn patch(&self, target: &str, body: &Value) -> Answer {
        self.send(Call::patch(target).bearer(&self.token).json(body))
    }

    /// Deletes as the owner.
    pub(crate) fn delete(&self, target: &str) -> Answer {
        self.send(Call::delete(target).bearer(&self.token))
    }

    /// A path of the project: `{project}` is its id.
    pub(crate) fn path(&self, rest: &str) -> String {
        format!("/projects/{}/{rest}", self.project)
    }

    /// One more project.
    pub(crate) fn project(&self, settings: &Value) -> Project {
        let mut body = json!({"name": "another"});
        if let (Some(body), Some(settings)) = (body.as_object_mut(), settings.as_object()) {
            body.extend(settings.clone());
        }
        let made = self.post("/projects", &body);
        assert_eq!(made.status, 201, "{}", made.text());
        Project { id: made.field("project_id"), key: made.field("public_key") }
    }

    /// One more token.
    #[track_caller]
    pub(crate) fn token(&self, role: &str, scopes: &[&str], project: Option<&str>) -> String {
        let body = json!({"name": "a token", "role": role, "scopes": scopes, "project_id": project});
        let made = self.post("/api-tokens", &body);
        assert_eq!(made.status, 201, "{}", made.text());
        made.field("token")
    }

    /// Sends an event of the first project from a browser.
    pub(crate) fn track(&self, event: &Value) -> Answer {
        self.send(Call::post("/track").key(&self.key).agent(BROWSER).json(event))
    }

    /// The same, and it is recorded.
    #[track_caller]
    pub(crate) fn recorded(&self, event: &Value) -> Value {
        let answer = self.track(event);
        assert_eq!((answer.status, answer.json()["status"].as_str()), (202, Some("recorded")), "{event}: {}", answer.text());
        answer.json()
    }

    /// Records an order of ada's, who is of the company acme.com and of the group t1, and gives the
    /// company's id.
    #[track_caller]
    pub(crate) fn peopled(&self) -> String {
        let email = json!({"email": "ada@acme.com"});
        self.recorded(
            &json!({"name": "order", "user_id": "ada", "value": 5, "group_type": "team", "group_id": "t1", "metadata": email}),
        );
        self.get("/companies/lookup?domain=acme.com").field("company_id")
    }

    /// How many users a project ever had.
    #[track_caller]
    pub(crate) fn users(&self, project: &str) -> u64 {
        let path = format!("/projects/{project}/analytics/count-unique-users-per-day");
        let answer = self.post(&path, &json!({"start_date": EVER.0, "end_date": EVER.1}));
        let body = answer.ok(200);
        body["total_unique_users"].as_u64().unwrap_or_else(|| panic!("no total in {body}"))
    }

    /// Revenue of a project, ever.
    #[track_caller]
    pub(crate) fn metrics(&self, project: &str) -> Value {
        self.get(&format!("/projects/{project}/revenue/metrics?start_date={}&end_date={}", EVER.0, EVER.1)).ok(200)
    }
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
    i64::try_from(since.as_millis()).expect("a clock of this age")
}

/// Waits for the next day if this one is about to end: what is relative to today must not change
/// within a test.
pub(crate) fn away_from_midnight() {
    const DAY_MS: i64 = 86_400_000;
    const MARGIN_MS: i64 = 30_000;
    let left_ms = DAY_MS - now_ms() % DAY_MS;
    if left_ms < MARGIN_MS {
        std::thread::sleep(Duration::from_millis(left_ms.unsigned_abs() + 10));
    }
}

/// An instant as RFC 3339, in UTC.
pub(crate) fn rfc3339(at_ms: i64) -> String {
    headcount_model::time::shown(at_ms).text().expect("a text").to_owned()
}

impl Subject for Tenant {
    fn now_ms(&mut self) -> i64 {
        now_ms() + self.server.clock().map_or(0, WrongClock::ahead_ms)
    }

    fn request(&mut self, request: &Request) -> (u16, Json) {
        let answer = self.server.send(&call_of(request, &self.token));
        (answer.status, body_of(&answer))
    }

    fn restart(&mut self) {
        self.server.restart();
    }
}

/// A request of a history, by the owner whose token it is.
pub(crate) fn call_of(request: &Request, token: &str) -> Call {
    let method = match request.method {
        Method::Get => "GET",
        Method::Post => "POST",
        Method::Patch => "PATCH",
    };
    let mut target = encoded_path(&request.path);
    if !request.query.is_empty() {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(&request.query);
        target = format!("{target}?{}", query.finish());
    }
    let mut call = Call::new(method, target);
    call = match &request.credential {
        Credential::Owner => call.bearer(token),
        Credential::PublicKey(key) if request.headers.iter().any(|(name, _)| name == "user-agent") => call.key(key),
        Credential::PublicKey(key) => call.key(key).agent(BROWSER),
    };
    call = request.headers.iter().fold(call, |call, (name, value)| call.header(name, value));
    if let Some(body) = &request.body {
        call = call.text("application/json", body.as_bytes());
    }
    call
}

/// The body of an answer, which is empty or JSON.
pub(crate) fn body_of(answer: &Answer) -> Json {
    if answer.body.is_empty() { Json::Null } else { Json::parse(&answer.text()).expect("JSON") }
}

/// A path whose segments may hold anything but `/`.
fn encoded_path(path: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'_' | b'.' | b'~');
    let encoded = path.bytes().map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") });
    encoded.collect()
}
