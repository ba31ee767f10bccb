//! Secrets and people on the organization's side (webhooks, notifications, privacy requests,
//! profiles and builds): in no line of the log, at any level, and in no file but those that are for
//! them.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::Call;
use crate::errors::assert_refused;
use crate::profile_builds::Site;
use crate::secrets::files;
use crate::server::TestServer;
use crate::tenant::Tenant;
use crate::webhooks::Receiver;

/// How long what happens in the background may take.
const PATIENCE: Duration = Duration::from_secs(90);

const MESSAGE: &str = "canary-message";
const UNCONSENTED: &str = "canary-message-of-nobody";
const CHANNEL: &str = "canary-channel";
const ERASED_EMAIL: &str = "canary-erased@person.example";
const ERASED_NAME: &str = "Canary Erased";
const ERASED_ID: &str = "canary-erased-id";
const EXPORTED_EMAIL: &str = "canary-exported@person.example";
const EXPORTED_NAME: &str = "Canary Exported";
const UNKNOWN_EMAIL: &str = "canary-unknown@person.example";
const LABEL: &str = "canary-label";
const DESCRIPTION: &str = "canary-description";
const PROFILE_EMAIL: &str = "canary-profile@company.example";
const SITE_TEXT: &str = "canary-site-text";
const SITE_EMAIL: &str = "canary-site@company.example";
/// In the URL of a webhook, as some receivers have it.
const HOOK_KEY: &str = "hk_canary0canary0canary0canary0canar";
/// In the website that a build is asked for.
const BUILD_TOKEN: &str = "sk_canary1canary1canary1canary1canar";
/// In what a website refers to: anybody can read it there.
const SITE_TOKEN: &str = "sk_canary2canary2canary2canary2canar";
const PASSWORD: &str = "canary-password";

/// Asks for what is at a path until it `is_so`.
#[track_caller]
fn when(tenant: &Tenant, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let until = Instant::now() + PATIENCE;
    loop {
        let shown = tenant.get(path).ok(200);
        if is_so(&shown) {
            return shown;
        }
        assert!(Instant::now() < until, "{shown}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Makes webhooks: one that is delivered to after failures, one whose receiver is gone. Returns
/// their paths, and all their secrets.
fn webhooks(tenant: &Tenant) -> ([String; 2], Vec<String>) {
    let receiver = Receiver::start(&[0, 204]);
    let mut secrets = Vec::new();
    let mut create = |url: String| {
        let made = tenant.post("/webhooks", &json!({"project_id": tenant.project, "url": url})).ok(201);
        let path = format!("/webhooks/{}", made["id"].as_str().unwrap());
        let rotated = tenant.post(&format!("{path}/rotate-secret"), &json!({})).ok(200);
        secrets.extend([&made, &rotated].map(|answer| answer["secret"].as_str().unwrap().to_owned()));
        path
    };
    let paths = [create(format!("{}?key={HOOK_KEY}", receiver.url())), create(format!("http://127.0.0.1:9/{HOOK_KEY}"))];
    tenant.recorded(&json!({"name": "sale", "notify": true, "message": MESSAGE, "channel": CHANNEL}));
    tenant.recorded(&json!({"name": "sale", "notify": true, "message": UNCONSENTED, "pc": "", "user_id": ERASED_ID}));
    assert_eq!(receiver.wait(3).len(), 3, "a failure, and both notifications");
    when(tenant, &format!("{}/deliveries?status=pending", paths[1]), |list| list["deliveries"][0]["attempts"] != 0);
    (paths, secrets)
}

/// Makes and changes a profile, and builds others from websites that are there, fail or lead to
/// secrets.
fn profiles(tenant: &Tenant) {
    tenant.patch("/organization", &json!({"capabilities": ["target_accounts"], "actions_balance": 50})).ok(200);
    let fields = json!({"label": LABEL, "description": DESCRIPTION, "emails": [PROFILE_EMAIL], "social": {"x": "https://x.example/canary"}});
    let made = tenant.post("/company-profiles", &fields).ok(201);
    let path = format!("/company-profiles/{}", made["id"].as_str().unwrap());
    tenant.patch(&path, &json!({"name": LABEL, "technologies": [DESCRIPTION]})).ok(200);
    assert_eq!(tenant.patch(&path, &json!({"emails": [format!("{PROFILE_EMAIL} and more")]})).status, 400);

    let html = "content-type: text/html\r\n";
    let page = format!(
        "<title>{SITE_TEXT}</title><meta name=description content='{SITE_TEXT}'><a href='/about?token={SITE_TOKEN}'>About</a>\
         <a href='mailto:{SITE_EMAIL}'>mail</a>"
    );
    let away = format!("location: http://10.0.0.1/?token={SITE_TOKEN}\r\n");
    let sites =
        [Site::start(&[("/", 200, html, &page)]), Site::start(&[("/", 302, &away, "")]), Site::start(&[("/", 404, html, &page)])];
    let closed = "http://127.0.0.1:9".to_owned();
    for (number, site) in sites.iter().map(Site::url).chain([closed]).enumerate() {
        let account = tenant.post("/company-profiles", &json!({"website": site})).ok(201);
        let asked = json!({"website": format!("{site}/?token={BUILD_TOKEN}"), "profile_id": account["id"]});
        let run = tenant.post("/company-profiles/build", &asked).ok(202);
        let ended = when(tenant, &format!("/company-profiles/builds/{}", run["run_id"].as_str().unwrap()), |run| {
            !["queued", "running"].contains(&run["status"].as_str().unwrap())
        });
        assert_eq!(ended["status"] == "succeeded", number == 0, "{ended}");
        assert!(!ended.to_string().contains(BUILD_TOKEN), "{ended}");
    }
    for website in [format!("https://ada:{PASSWORD}@acme.example"), format!("ftp://acme.example/{BUILD_TOKEN}")] {
        let refused = tenant.post("/company-profiles/build", &json!({"website": website}));
        assert_refused(&website, &refused, 400, "invalid_parameter", Some("website"));
        assert!(!refused.text().contains(PASSWORD), "{}", refused.text());
    }
}

/// Exports two people, erases one, and asks about nobody.
fn privacy(tenant: &Tenant) {
    let identify = |id: &str, email: &str, name: &str| {
        let traits = json!({"email": email, "name": name});
        tenant.recorded(&json!({"name": "identify", "user_id": id, "anonymous_id": format!("{id}-a"), "metadata": traits}));
    };
    identify(ERASED_ID, ERASED_EMAIL, ERASED_NAME);
    identify("exported", EXPORTED_EMAIL, EXPORTED_NAME);
    let request = |kind: &str, field: &str, value: &str| {
        let made = tenant.post("/privacy-requests", &json!({"type": kind, field: value})).ok(201);
        let path = format!("/privacy-requests/{}", made["id"].as_str().unwrap());
        when(tenant, &path, |request| request["status"] == "completed");
        path
    };
    for email in [ERASED_EMAIL, EXPORTED_EMAIL] {
        let artifact = tenant.get(&format!("{}/download", request("export", "email", email)));
        assert!(artifact.text().contains(email), "{}", artifact.text());
    }
    request("erasure", "user_id", ERASED_ID);
    let dropped = tenant.track(&json!({"name": "late", "user_id": ERASED_ID, "message": ERASED_NAME})).ok(202);
    assert_eq!(dropped["reason"], "opted_out");
    assert_eq!(tenant.post("/privacy-requests", &json!({"type": "export", "email": UNKNOWN_EMAIL})).status, 404);
    for path in ["/privacy-requests", "/audit-log"] {
        assert!(!tenant.get(path).text().contains("canary-erased"), "{}", tenant.get(path).text());
    }
}

/// What is in the data directory. Not all of it is text, but what is searched for is ASCII, which
/// stays as it is.
struct Contents(Vec<(PathBuf, String)>);

impl Contents {
    fn of(server: &TestServer) -> Contents {
        let read = |path: PathBuf| {
            match std::fs::read(&path) {
                Ok(bytes) => Some((path, String::from_utf8_lossy(&bytes).into_owned())),
                // The server replaces files.
                Err(error) if error.kind() == ErrorKind::NotFound => None,
                Err(error) => panic!("{}: {error}", path.display()),
            }
        };
        Contents(files(server.data_dir()).into_iter().filter_map(read).collect())
    }

    /// The files that have a text.
    fn with(&self, text: &str) -> Vec<&Path> {
        self.0.iter().filter(|(_, content)| content.contains(text)).map(|(path, _)| &**path).collect()
    }
}

#[track_caller]
fn assert_files(server: &TestServer, secrets: &[String]) {
    let contents = Contents::of(server);
    for text in [ERASED_EMAIL, ERASED_NAME, ERASED_ID, UNCONSENTED, UNKNOWN_EMAIL, BUILD_TOKEN, PASSWORD] {
        assert_eq!(contents.with(text), Vec::<&Path>::new(), "{text}");
    }
    // The search finds what is there.
    assert!(!contents.with("exported").is_empty() && !contents.with(MESSAGE).is_empty());
    let within = |folders: &'static [&'static str]| {
        let root = server.data_dir().to_owned();
        move |path: &Path| folders.iter().any(|folder| path.starts_with(root.join(folder)))
    };
    let (of_control, of_events) = (within(&["control"]), within(&["log", "archive"]));
    for text in [MESSAGE, CHANNEL] {
        assert!(contents.with(text).iter().all(|path| of_events(path)), "{text} is in {:?}", contents.with(text));
    }
    for text in [LABEL, DESCRIPTION, PROFILE_EMAIL, SITE_TEXT, SITE_EMAIL, SITE_TOKEN] {
        let found = contents.with(text);
        assert!(!found.is_empty() && found.iter().all(|path| of_control(path)), "{text} is in {found:?}");
    }
    for secret in secrets {
        assert_eq!(contents.with(secret), Vec::<&Path>::new(), "it is derived");
    }
}

fn planted(level: &str, format: &str) {
    let settings = ["--log", level, "--log-format", format, "--outbound-allow", "127.0.0.1"];
    let server = Arc::new(TestServer::start_with(&settings));
    let tenant = Tenant::on(&server);
    let (hooks, secrets) = webhooks(&tenant);
    profiles(&tenant);
    privacy(&tenant);
    server.restart();
    tenant.get(&format!("/audit-log?target_id={BUILD_TOKEN}")).ok(200);
    let metrics = tenant.send(Call::get("/metrics").header("host", "localhost")).text();
    server.kill();
    // What the erasure left is in the archive, compressed.
    tenant.recorded(&json!({"name": "sale", "message": MESSAGE, "channel": CHANNEL}));
    assert_files(&server, &secrets);
    for path in &hooks {
        assert_eq!(tenant.delete(path).status, 204);
    }
    let contents = Contents::of(&server);
    for secret in &secrets {
        assert_eq!(contents.with(secret), Vec::<&Path>::new(), "of a webhook that is removed");
    }
    assert!(server.stop().success());
    let log = server.log();
    assert!(log.lines().count() >= 3, "there is a log: {log}");
    let said = log.lines().chain(metrics.lines());
    let canaries = ["canary", "Canary"].into_iter().chain(secrets.iter().map(String::as_str));
    for canary in canaries {
        assert_eq!(said.clone().find(|line| line.contains(canary)), None, "{canary} is in the log at level {level}");
    }
}

#[test]
fn no_canary_of_the_organization_is_logged_at_debug() {
    planted("debug", "text");
}

#[test]
fn no_canary_of_the_organization_is_logged_at_trace_by_the_program_itself() {
    let crates = ["", "_actors", "_storage", "_domain", "_archive", "_outbound", "_research"];
    let levels: Vec<String> = crates.iter().map(|name| format!("headcount{name}=trace")).collect();
    planted(&format!("info,{}", levels.join(",")), "json");
}
