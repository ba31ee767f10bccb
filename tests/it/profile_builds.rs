//! `/company-profiles/build`, with websites on this machine.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::errors::assert_refused;
use crate::server::TestServer;
use crate::tenant::Tenant;

const PATH: &str = "/company-profiles/build";
/// How long a build may take to end.
const PATIENCE: Duration = Duration::from_secs(90);
const HTML: &str = "content-type: text/html; charset=utf-8\r\n";
const HOME: &str = "<title>Acme</title><meta name=description content='Anvils.'><a href=/about>About</a>\
    <script type='application/ld+json'>{\"@type\": \"Organization\", \"name\": \"Acme, Inc.\", \"logo\": \"/logo.png\", \
    \"sameAs\": [\"https://www.linkedin.com/company/acme\"]}</script>";

/// A website: the answers by path, each a status, headers and a body. `slow` never ends.
pub(crate) struct Site {
    port: u16,
}

impl Site {
    pub(crate) fn start(answers: &[(&str, u16, &str, &str)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let owned = |(path, status, headers, body): &(&str, u16, &str, &str)| {
            ((*path).to_owned(), (*status, (*headers).to_owned(), (*body).to_owned()))
        };
        let answers: BTreeMap<String, (u16, String, String)> = answers.iter().map(owned).collect();
        let site = Self { port: listener.local_addr().unwrap().port() };
        // It ends with the process of the tests.
        std::thread::spawn(move || {
            let mut kept_open = Vec::new();
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { continue };
                let (mut head, mut byte) = (Vec::new(), [0]);
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
                    head.push(byte[0]);
                }
                let path = String::from_utf8_lossy(&head).split(' ').nth(1).unwrap_or_default().to_owned();
                let none = (404, String::new(), String::new());
                let (status, headers, body) = answers.get(&path).unwrap_or(&none);
                let body = if body == "10 MiB" { "x".repeat(10 << 20) } else { body.clone() };
                let (length, is_slow) = (body.len(), body == "slow");
                let sent = if is_slow { &body[..1] } else { &body };
                let length = if is_slow { 1_000 } else { length };
                let _ =
                    write!(stream, "HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{sent}");
                if is_slow {
                    kept_open.push(stream);
                }
            }
        });
        site
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

fn tenant() -> Tenant {
    let tenant = Tenant::on(&Arc::new(TestServer::start_with(&["--outbound-allow", "127.0.0.1"])));
    tenant.patch("/organization", &json!({"actions_balance": 50})).ok(200);
    tenant
}

fn begin(tenant: &Tenant, body: &Value) -> String {
    let answer = tenant.post(PATH, body).ok(202);
    let id = answer["run_id"].as_str().unwrap().to_owned();
    assert!(id.starts_with("run_") && answer.as_object().unwrap().len() == 1, "{answer}");
    id
}

fn end(tenant: &Tenant, run: &str) -> Value {
    let began = Instant::now();
    loop {
        let build = tenant.get(&format!("/company-profiles/builds/{run}")).ok(200);
        if !["queued", "running"].contains(&build["status"].as_str().unwrap()) {
            return build;
        }
        assert_eq!((&build["profile"], &build["error"]), (&Value::Null, &Value::Null), "{build}");
        assert!(began.elapsed() < PATIENCE, "{build}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn built(tenant: &Tenant, website: &str) -> Value {
    end(tenant, &begin(tenant, &json!({"website": website})))
}

#[test]
fn a_profile_is_built_and_refreshed() {
    let tenant = tenant();
    let site = Site::start(&[
        ("/", 301, "location: /home\r\n", ""),
        ("/home", 200, HTML, HOME),
        ("/about", 200, HTML, "<a href='mailto:hi@acme.example'>mail</a>"),
    ]);
    let first = built(&tenant, &format!("{}/home?x=1", site.url()));
    assert_eq!((&first["status"], &first["error"], &first["actions_spent"]), (&json!("succeeded"), &Value::Null, &json!(0)));
    let profile = &first["profile"];
    let shown = json!({
        "id": profile["id"], "kind": "self", "label": "127.0.0.1", "website": site.url(), "company_id": null,
        "name": "Acme, Inc.", "description": "Anvils.", "industry": null, "logo_url": format!("{}/logo.png", site.url()),
        "social": {"linkedin": "https://www.linkedin.com/company/acme"}, "emails": ["hi@acme.example"], "technologies": [],
        "sources": profile["sources"], "created_at": profile["created_at"], "updated_at": profile["updated_at"],
    });
    assert_eq!(*profile, shown);
    let urls: Vec<_> = profile["sources"].as_array().unwrap().iter().map(|source| source["url"].as_str().unwrap()).collect();
    assert_eq!(urls, [format!("{}/home", site.url()), format!("{}/about", site.url())]);
    assert!(profile["sources"][0]["fetched_at"].is_string() && profile["sources"][0]["status"] == 200);
    assert_eq!(tenant.get(&format!("/company-profiles/{}", profile["id"].as_str().unwrap())).ok(200), *profile);

    let mismatch = tenant.post(PATH, &json!({"website": "other.example", "profile_id": profile["id"]}));
    assert_refused("another website", &mismatch, 409, "website_mismatch", None);
    let path = format!("/company-profiles/{}", profile["id"].as_str().unwrap());
    tenant.patch(&path, &json!({"name": "Mine", "description": ""})).ok(200);
    let second = end(&tenant, &begin(&tenant, &json!({"website": site.url(), "profile_id": profile["id"]})));
    assert_eq!((&second["profile"]["name"], &second["profile"]["description"]), (&json!("Mine"), &json!("Anvils.")));
    assert_eq!(second["actions_spent"], 1);
    let ledger = tenant.get("/organization/actions").ok(200);
    assert_eq!((&ledger["balance"], &ledger["actions"][0]["run_id"]), (&json!(49), &second["run_id"]));
    assert_eq!(ledger["actions"][0]["reason"], "build");
    let entry = &tenant.get("/audit-log?action=company_profile.created").ok(200)["entries"][0];
    assert_eq!((&entry["target"]["id"], &entry["actor"]["kind"]), (&profile["id"], &json!("token")));
    // The profile is gone, the run is not.
    assert_eq!(tenant.delete(&path).status, 204);
    let gone = tenant.get(&format!("/company-profiles/builds/{}", second["run_id"].as_str().unwrap())).ok(200);
    assert_eq!((&gone["status"], &gone["profile"]), (&json!("succeeded"), &Value::Null));
}

#[test]
fn each_kind_of_website_has_its_end() {
    let tenant = Tenant::on(&tenant().server);
    tenant.patch("/organization", &json!({"actions_balance": 50, "capabilities": ["target_accounts"]})).ok(200);
    let to = |target: &str| Site::start(&[("/", 302, &format!("location: {target}\r\n"), "")]);
    let sites = [
        (to("/"), "too_many_redirects"),
        (to("http://169.254.169.254/latest/meta-data"), "blocked_address"),
        // A name with an address that is not global, and an address in the form of another version.
        (to("http://localhost:1/"), "connect_failed"),
        (to("http://[::ffff:10.0.0.1]/"), "blocked_address"),
        (Site::start(&[("/", 200, HTML, "10 MiB")]), "too_large"),
        (Site::start(&[("/", 200, "content-type: application/pdf\r\n", "%PDF")]), "not_html"),
        (Site::start(&[("/", 404, HTML, "")]), "http_status"),
        (Site::start(&[("/", 200, HTML, "slow")]), "timeout"),
        (Site::start(&[("/robots.txt", 200, "", "User-agent: *\nDisallow: /"), ("/", 200, HTML, HOME)]), "robots_disallowed"),
    ];
    let runs: Vec<_> = sites
        .iter()
        .map(|(site, code)| {
            let made = tenant.post("/company-profiles", &json!({"website": site.url()})).ok(201);
            (begin(&tenant, &json!({"website": site.url()})), made["id"].clone(), *code)
        })
        .collect();
    for (run, profile, code) in runs {
        let build = end(&tenant, &run);
        let found = (&build["status"], &build["error"]["code"], &build["profile"], &build["actions_spent"]);
        assert_eq!(found, (&json!("failed"), &json!(code), &Value::Null, &json!(0)), "{build}");
        assert!(build["error"]["message"].is_string() && build["error"]["url"].is_string(), "{build}");
        let profile = tenant.get(&format!("/company-profiles/{}", profile.as_str().unwrap())).ok(200);
        assert_eq!((&profile["name"], &profile["sources"]), (&Value::Null, &json!([])));
    }
    let malformed = Site::start(&[("/", 200, HTML, "<title>Half a ti<b>tle</title><div <a href='"), ("/about", 500, HTML, "")]);
    let build = built(&tenant, &malformed.url());
    assert_eq!((&build["status"], &build["profile"]["kind"]), (&json!("succeeded"), &json!("self")), "{build}");
    let ledger = tenant.get("/organization/actions?limit=100").ok(200);
    let reasons: Vec<_> = ledger["actions"].as_array().unwrap().iter().map(|entry| entry["reason"].as_str().unwrap()).collect();
    let count = |reason| reasons.iter().filter(|found| **found == reason).count();
    assert_eq!((count("build"), count("refund"), &ledger["balance"]), (10, 9, &json!(49)));
}

#[test]
fn what_a_build_is_refused_for() {
    let tenant = Tenant::on(&Arc::new(TestServer::start_with(&[])));
    // The addresses of this machine are not allowed here.
    let blocked = built(&tenant, "http://127.0.0.1:9");
    assert_eq!((&blocked["error"]["code"], &blocked["actions_spent"]), (&json!("blocked_address"), &json!(0)));
    let named = built(&tenant, "http://localhost:9");
    assert_eq!(named["error"]["code"], "blocked_address");
    assert_refused("no website", &tenant.post(PATH, &json!({})), 400, "missing_parameter", Some("website"));
    for website in [json!("ftp://acme.com"), json!("https://ada:pw@acme.com"), json!(""), json!(1)] {
        let answer = tenant.post(PATH, &json!({"website": website}));
        assert_refused(&website.to_string(), &answer, 400, "invalid_parameter", Some("website"));
    }
    for id in ["cp_0000000000000000", "none"] {
        let answer = tenant.post(PATH, &json!({"website": "acme.com", "profile_id": id}));
        assert_refused(id, &answer, 404, "not_found", None);
    }
    for id in ["run_0000000000000000", "none"] {
        assert_refused(id, &tenant.get(&format!("/company-profiles/builds/{id}")), 404, "not_found", None);
    }
    tenant.patch("/organization", &json!({"capabilities": ["target_accounts"]})).ok(200);
    tenant.post("/company-profiles", &json!({"website": "acme.com"})).ok(201);
    assert_refused("exhausted", &tenant.post(PATH, &json!({"website": "acme.com"})), 403, "actions_exhausted", None);
    let other = Tenant::on(&tenant.server);
    let run = format!("/company-profiles/builds/{}", blocked["run_id"].as_str().unwrap());
    assert_refused("another organization's", &other.get(&run), 404, "not_found", None);
}
