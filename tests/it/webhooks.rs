//! `/webhooks`, with a receiver on this machine.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hmac::{Hmac, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::errors::assert_refused;
use crate::server::{TestServer, command};
use crate::tenant::Tenant;

const PATH: &str = "/webhooks";
/// How long a notification may take to come, with the waits of the first tries.
const PATIENCE: Duration = Duration::from_secs(60);

/// A request that a receiver got.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    signature: String,
    body: Vec<u8>,
}

impl Received {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a JSON body")
    }

    /// The signatures that are right for a secret.
    pub(crate) fn count_signed_by(&self, secret: &str) -> usize {
        let (time, signatures) = self.signature.split_once(',').expect("a signature");
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
        mac.update(time.strip_prefix("t=").expect("a time").as_bytes());
        mac.update(b".");
        mac.update(&self.body);
        let expected: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        signatures.split(',').filter(|signature| signature.strip_prefix("v1=") == Some(&expected)).count()
    }
}

/// A receiver that answers with one status after another, the last one for ever; 0 cuts the
/// connection.
pub(crate) struct Receiver {
    address: SocketAddr,
    got: Arc<Mutex<Vec<Received>>>,
}

impl Receiver {
    pub(crate) fn start(statuses: &[u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (got, mut statuses) = (Arc::new(Mutex::new(Vec::new())), statuses.to_vec());
        let receiver = Self { address, got: Arc::clone(&got) };
        // It ends with the process of the tests.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { continue };
                let Some(received) = read(&mut BufReader::new(&stream)) else { continue };
                got.lock().unwrap().push(received);
                let status = if statuses.len() > 1 { statuses.remove(0) } else { statuses[0] };
                if status != 0 {
                    let _ = write!(stream, "HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                }
            }
        });
        receiver
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// Waits until it got `count` requests.
    #[track_caller]
    pub(crate) fn wait(&self, count: usize) -> Vec<Received> {
        let began = Instant::now();
        loop {
            let got = self.got.lock().unwrap().clone();
            if got.len() >= count {
                return got;
            }
            assert!(began.elapsed() < PATIENCE, "{} of {count} requests came", got.len());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn read(stream: &mut BufReader<impl Read>) -> Option<Received> {
    let (mut length, mut signature, mut line) = (0, String::new(), String::new());
    while stream.read_line(&mut line).ok()? > 2 {
        let (name, value) = line.split_once(':').unwrap_or_default();
        match &*name.to_ascii_lowercase() {
            "content-length" => length = value.trim().parse().ok()?,
            "headcount-signature" => signature = value.trim().to_owned(),
            _ => {}
        }
        line.clear();
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some(Received { signature, body })
}

fn tenant() -> Tenant {
    Tenant::on(&Arc::new(TestServer::start_with(&["--outbound-allow", "127.0.0.1"])))
}

fn notify(tenant: &Tenant, message: &str) {
    tenant.recorded(&json!({"name": "sale", "notify": true, "message": message, "channel": "sales"}));
}

fn made(tenant: &Tenant, url: &str) -> Value {
    tenant.post(PATH, &json!({"project_id": tenant.project, "url": url})).ok(201)
}

fn path(webhook: &Value) -> String {
    format!("{PATH}/{}", webhook["id"].as_str().unwrap())
}

/// Waits until a webhook has `count` deliveries with a status.
#[track_caller]
fn wait_for(tenant: &Tenant, webhook: &Value, status: &str, count: usize) -> Vec<Value> {
    let began = Instant::now();
    loop {
        let answer = tenant.get(&format!("{}/deliveries?limit=100&status={status}", path(webhook))).ok(200);
        let deliveries = answer["deliveries"].as_array().unwrap().clone();
        if deliveries.len() >= count {
            return deliveries;
        }
        assert!(began.elapsed() < PATIENCE, "{answer}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn notifications_come_signed_in_order_past_failures_and_a_kill() {
    let (tenant, receiver) = (tenant(), Receiver::start(&[500, 0, 204]));
    notify(&tenant, "before");
    let webhook = made(&tenant, &receiver.url());
    tenant.recorded(&json!({"name": "quiet"}));
    notify(&tenant, "0");
    let first = receiver.wait(1);
    tenant.server.kill();
    (1..20).for_each(|number| notify(&tenant, &number.to_string()));
    let deliveries = wait_for(&tenant, &webhook, "delivered", 20);
    let got = receiver.wait(22);
    let mut messages: Vec<_> =
        got.iter().map(|received| received.json()["data"]["message"].as_str().unwrap().to_owned()).collect();
    assert!(got.iter().filter(|one| one.json()["id"] == first[0].json()["id"]).all(|one| one.body == first[0].body));
    messages.dedup();
    assert_eq!(messages, (0..20).map(|number| number.to_string()).collect::<Vec<_>>());
    let secret = webhook["secret"].as_str().unwrap();
    assert!(secret.starts_with("whsec_") && secret.len() == 38);
    assert!(got.iter().all(|received| received.count_signed_by(secret) == 1));
    let body = got[0].json();
    let data = json!({
        "event_id": body["data"]["event_id"], "name": "sale", "message": "0", "channel": "sales", "at": body["data"]["at"],
    });
    let expected = json!({
        "id": deliveries[19]["id"], "type": "notification", "webhook_id": webhook["id"], "project_id": tenant.project,
        "position": deliveries[19]["position"], "created_at": body["created_at"], "data": data,
    });
    assert_eq!(body, expected);
    assert!(deliveries[19]["attempts"].as_u64().unwrap() >= 2);
}

#[test]
fn a_rotation_signs_twice_a_pause_waits_and_a_replay_repeats() {
    let (tenant, receiver) = (tenant(), Receiver::start(&[200]));
    let webhook = made(&tenant, &receiver.url());
    let rotated = tenant.post(&format!("{}/rotate-secret", path(&webhook)), &json!({})).ok(200);
    assert_eq!(tenant.patch(&path(&webhook), &json!({"status": "paused"})).ok(200)["status"], "paused");
    notify(&tenant, "a");
    notify(&tenant, "b");
    assert_eq!(tenant.get(&format!("{}/deliveries", path(&webhook))).ok(200)["deliveries"], json!([]));
    tenant.patch(&path(&webhook), &json!({"status": "active"})).ok(200);
    let got = receiver.wait(2);
    for secret in [&webhook["secret"], &rotated["secret"]] {
        assert!(got.iter().all(|received| received.count_signed_by(secret.as_str().unwrap()) == 1));
    }
    let deliveries = wait_for(&tenant, &webhook, "delivered", 2);
    let from = deliveries[1]["position"].as_u64().unwrap();
    let replay = tenant.post(&format!("{}/replay", path(&webhook)), &json!({"from_position": from})).ok(202);
    assert_eq!((&replay["from_position"], replay["to_position"].as_u64() >= Some(from + 1)), (&json!(from), true));
    let got = receiver.wait(4);
    assert_eq!([&got[2].body, &got[3].body], [&got[0].body, &got[1].body]);
    assert_eq!(tenant.delete(&path(&webhook)).status, 204);
    assert_refused("removed", &tenant.get(&path(&webhook)), 404, "not_found", None);
    let entries = tenant.get("/audit-log?limit=100").ok(200);
    let actions = entries["entries"].as_array().unwrap().iter().filter(|entry| entry["target"]["id"] == webhook["id"]);
    let actions: Vec<_> = actions.map(|entry| entry["action"].as_str().unwrap()).collect();
    let expected = ["deleted", "replayed", "updated", "updated", "secret_rotated", "created"];
    assert_eq!(actions, expected.map(|action| format!("webhook.{action}")));
    assert!(!entries.to_string().contains("whsec_"));
}

#[test]
fn an_erased_notification_is_no_longer_sent_and_a_deleted_project_has_no_webhook() {
    let (tenant, receiver) = (tenant(), Receiver::start(&[500]));
    let webhook = made(&tenant, &receiver.url());
    tenant.recorded(&json!({"name": "sale", "notify": true, "message": "ada's", "user_id": "ada"}));
    wait_for(&tenant, &webhook, "pending", 1);
    tenant.patch(&path(&webhook), &json!({"status": "paused"})).ok(200);
    tenant.recorded(&json!({"name": "sale", "notify": true, "message": "ada's second", "user_id": "ada"}));
    let request = tenant.post("/privacy-requests", &json!({"type": "erasure", "user_id": "ada"})).ok(201);
    let request = format!("/privacy-requests/{}", request["id"].as_str().unwrap());
    let began = Instant::now();
    while tenant.get(&request).ok(200)["status"] != "completed" {
        assert!(began.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(20));
    }
    let before = receiver.got.lock().unwrap().len();
    notify(&tenant, "later");
    tenant.patch(&path(&webhook), &json!({"status": "active"})).ok(200);
    let got = receiver.wait(before + 1);
    assert_eq!(got.last().unwrap().json()["data"]["message"], "later", "what was pending is gone");
    // It is listed once the answer of the receiver is known.
    wait_for(&tenant, &webhook, "pending", 1);
    let deliveries = tenant.get(&format!("{}/deliveries", path(&webhook))).ok(200);
    let listed: Vec<_> = deliveries["deliveries"].as_array().unwrap().iter().map(|delivery| &delivery["id"]).collect();
    assert_eq!(listed, [&got.last().unwrap().json()["id"]]);
    tenant.delete(&format!("/projects/{}", tenant.project));
    assert_refused("removed", &tenant.get(&path(&webhook)), 404, "not_found", None);
}

/// So that webhooks can be paused before a restored copy serves.
#[test]
fn a_command_on_a_stopped_directory_sends_nothing() {
    let (tenant, receiver) = (tenant(), Receiver::start(&[500]));
    let webhook = made(&tenant, &receiver.url());
    notify(&tenant, "a");
    wait_for(&tenant, &webhook, "pending", 1);
    let organization = tenant.get("/organization").ok(200)["organization_id"].as_str().unwrap().to_owned();
    tenant.server.stop();
    let before = receiver.got.lock().unwrap().len();
    let set = |status: &str| {
        let arguments = ["set", webhook["id"].as_str().unwrap(), "--status", status, "--json", "--organization", &organization];
        let output = command("webhook", tenant.server.data_dir()).args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap()["status"], status);
    };
    set("paused");
    set("active");
    assert_eq!(receiver.got.lock().unwrap().len(), before);
}

#[test]
fn bad_webhooks_are_refused() {
    let tenant = Tenant::new();
    let post = |body: Value| tenant.post(PATH, &body);
    let project = &tenant.project;
    for url in
        ["http://127.0.0.1/", "http://10.0.0.1/", "http://[::1]/", "ftp://a.example/", "a.example", "http://u:p@a.example/"]
    {
        assert_refused(url, &post(json!({"project_id": project, "url": url})), 400, "invalid_parameter", Some("url"));
    }
    let body = json!({"project_id": project, "url": "https://a.example/", "events": []});
    assert_refused("no events", &post(body), 400, "invalid_parameter", Some("events"));
    let body = json!({"project_id": project, "url": "https://a.example/", "events": ["x"]});
    assert_refused("other events", &post(body), 400, "invalid_parameter", Some("events"));
    let body = json!({"project_id": "prj_00000000000", "url": "https://a.example/"});
    assert_refused("no project", &post(body), 404, "not_found", None);
    for _ in 0..100 {
        made(&tenant, "https://a.example/");
    }
    let body = json!({"project_id": project, "url": "https://a.example/"});
    assert_refused("too many", &post(body), 409, "limit_reached", None);
    let page = tenant.get(&format!("{PATH}?limit=100")).ok(200);
    assert_eq!((page["webhooks"].as_array().unwrap().len(), &page["truncated"]), (100, &json!(false)));
    assert!(!page.to_string().contains("whsec_"));
}
