//! Channels for e-mail, with a mail server on this machine.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::Call;
use crate::errors::assert_refused;
use crate::server::TestServer;
use crate::tenant::Tenant;

const PATIENCE: Duration = Duration::from_secs(30);
const FROM: [&str; 4] = ["--mail-from", "Figures <figures@stats.example>", "--public-url", "https://stats.example"];

/// A server that takes every letter, until the test ends. It refuses `never@…`, and puts `later@…`
/// off once.
#[derive(Clone, Default)]
struct Letters(Arc<Mutex<Vec<String>>>, Arc<AtomicBool>);

impl Letters {
    /// Starts it. Returns its URL, too.
    fn start() -> (Self, String) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("smtp://{}?tls=none", listener.local_addr().expect("an address"));
        let letters = Self::default();
        let taken = letters.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let taken = taken.clone();
                std::thread::spawn(move || taken.serve(&stream));
            }
        });
        (letters, url)
    }

    fn serve(&self, mut stream: &TcpStream) {
        let mut reader = BufReader::new(stream);
        let mut say = |text: &str| stream.write_all(format!("{text}\r\n").as_bytes());
        let mut line = String::new();
        let mut answer = say("220 test");
        while answer.is_ok() && reader.read_line(&mut line).unwrap_or(0) > 0 {
            answer = match line.trim_end() {
                "DATA" => {
                    let mut letter = String::new();
                    say("354 go on").expect("it listens");
                    while reader.read_line(&mut letter).unwrap_or(0) > 0 && !letter.ends_with("\r\n.\r\n") {}
                    self.0.lock().expect("the letters").push(letter.replace("=\r\n", "").replace("=3D", "="));
                    say("250 taken")
                }
                command if command.contains("<never@") => say("550 nobody"),
                command if command.contains("<later@") && !self.1.swap(true, Ordering::SeqCst) => say("451 later"),
                _ => say("250 ok"),
            };
            line.clear();
        }
    }

    /// Waits for letters. Returns them sorted by their receivers, and forgets them.
    #[track_caller]
    fn wait(&self, count: usize) -> Vec<(String, String)> {
        let began = Instant::now();
        while self.0.lock().expect("the letters").len() < count {
            assert!(began.elapsed() < PATIENCE, "there are letters: {:?}", self.0);
            std::thread::sleep(Duration::from_millis(20));
        }
        let letters = std::mem::take(&mut *self.0.lock().expect("the letters"));
        assert_eq!(letters.len(), count, "{letters:?}");
        let mut letters: Vec<_> = letters.into_iter().map(|letter| (header(&letter, "To"), letter)).collect();
        letters.sort();
        letters
    }
}

impl std::fmt::Debug for Letters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.lock().expect("the letters").fmt(f)
    }
}

fn header(letter: &str, name: &str) -> String {
    let value = letter.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
    value.unwrap_or_else(|| panic!("{name} in {letter}")).to_owned()
}

/// The path of the link in a letter.
fn link(letter: &str) -> String {
    let url = header(letter, "List-Unsubscribe");
    url.trim_matches(['<', '>']).strip_prefix("https://stats.example").expect("this server").to_owned()
}

fn tenant(settings: &[&str]) -> Tenant {
    Tenant::on(&Arc::new(TestServer::start_with(&[&FROM, settings].concat())))
}

fn channel(tenant: &Tenant, addresses: &Value) -> Value {
    tenant.post("/channels", &json!({"name": "Board", "kind": "email", "addresses": addresses})).ok(201)
}

/// Tests a channel.
fn test(tenant: &Tenant, channel: &Value) -> Value {
    tenant.post(&format!("/channels/{}/test", channel["channel_id"].as_str().expect("an id")), &json!({})).ok(200)
}

fn states(tenant: &Tenant) -> Vec<Value> {
    let channels = tenant.get("/channels").ok(200);
    channels["channels"][0]["addresses"].as_array().expect("addresses").iter().map(|address| address["state"].clone()).collect()
}

#[test]
fn only_those_who_want_messages_get_them() {
    let (letters, url) = Letters::start();
    let tenant = tenant(&["--smtp-url", &url]);
    let member = tenant.post("/members", &json!({"email": "ada@acme.com", "role": "member"})).ok(201);
    let made = channel(&tenant, &json!(["Ada@acme.com", "bob@other.example", " bob@other.example"]));
    assert_eq!((&made["target"], states(&tenant)), (&json!("2 addresses"), vec![json!("confirmed"), json!("unconfirmed")]));
    // A member's address is known. Another one is asked, and gets nothing else.
    let asked = letters.wait(1);
    assert_eq!(
        (asked[0].0.as_str(), header(&asked[0].1, "Subject").as_str()),
        ("bob@other.example", "Do you want messages about figures?")
    );
    let taken = json!({"delivered": true, "status": 250, "error": null, "accepted": 1, "refused": 0});
    assert_eq!(test(&tenant, &made), taken);
    let sent = letters.wait(2);
    assert_eq!((sent[0].0.as_str(), header(&sent[0].1, "Subject").as_str()), ("ada@acme.com", "headcount: a test"));
    assert_eq!(header(&sent[1].1, "Subject"), "Do you want messages about figures?");
    // To look at the link changes nothing: scanners of mails do that.
    let link = link(&asked[0].1);
    let page = tenant.send(Call::get(&link));
    assert!(page.status == 200 && page.text().contains("?wanted=true") && !page.text().contains("bob"), "{}", page.text());
    assert!(page.header("content-security-policy").is_some_and(|policy| policy.contains("form-action 'self'")), "{page:?}");
    assert_eq!((page.header("cache-control"), page.header("referrer-policy")), (Some("no-store"), Some("no-referrer")));
    assert_eq!(states(&tenant)[1], "unconfirmed");
    let page = tenant.send(Call::post(format!("{link}?wanted=true")).text("application/x-www-form-urlencoded", ""));
    assert!(page.status == 200 && page.text().contains("?wanted=false"), "{}", page.text());
    test(&tenant, &made);
    let sent = letters.wait(2);
    assert_eq!([&sent[0].0, &sent[1].0], ["ada@acme.com", "bob@other.example"]);
    // One click in a mail program ends it, also for members. Nobody but them can begin it again.
    for letter in [&sent[0].1, &sent[1].1] {
        let click = Call::post(self::link(letter)).text("application/x-www-form-urlencoded", "List-Unsubscribe=One-Click");
        assert_eq!(tenant.send(click).status, 200);
    }
    tenant.server.restart();
    assert_eq!(test(&tenant, &made)["error"], "no_recipients");
    let path = format!("/channels/{}", made["channel_id"].as_str().expect("an id"));
    let changed = tenant.patch(&path, &json!({"addresses": ["bob@other.example", "ada@acme.com"]})).ok(200);
    assert!(
        changed["addresses"].as_array().expect("addresses").iter().all(|address| address["state"] == "unsubscribed"),
        "{changed}"
    );
    letters.wait(0);
    assert_eq!(tenant.send(Call::post(format!("{}?wanted=true", self::link(&sent[0].1)))).status, 200);
    test(&tenant, &made);
    assert_eq!(letters.wait(1)[0].0, "ada@acme.com");
    // She confirmed it herself, so that it stays when the member goes.
    tenant.delete(&format!("/members/{}", member["member_id"].as_str().expect("an id")));
    assert_eq!(states(&tenant), ["unsubscribed", "confirmed"]);
    let forged = format!("{}{}{}", &link[..40], if &link[40..41] == "x" { "y" } else { "x" }, &link[41..]);
    for (wrong, what) in [(forged, "forged"), (format!("{link}A"), "too long"), ("/mail/x".into(), "no link")] {
        assert_eq!(tenant.send(Call::post(&wrong)).status, 404, "{what}");
    }
    // A link of an address that was removed still unsubscribes it.
    tenant.patch(&path, &json!({"addresses": ["ada@acme.com"]})).ok(200);
    let page = tenant.send(Call::get(format!("{link}?utm_source=x")));
    assert!(page.status == 200 && page.text().contains("not in the channel"), "{}", page.text());
    assert_eq!(tenant.delete(&path).status, 204);
    assert_eq!(tenant.send(Call::get(&link)).status, 404);
}

#[test]
fn addresses_are_asked_three_times_a_day_and_members_end_with_their_membership() {
    let (letters, url) = Letters::start();
    let tenant = tenant(&["--smtp-url", &url]);
    let member = tenant.post("/members", &json!({"email": "ada@acme.com", "role": "member"})).ok(201);
    let made = channel(&tenant, &json!(["bob@other.example"]));
    letters.wait(1);
    for (error, count) in [("no_recipients", 1), ("no_recipients", 1), ("asked_too_often", 0)] {
        let expected = json!({"delivered": false, "status": null, "error": error, "accepted": 0, "refused": 0});
        assert_eq!(test(&tenant, &made), expected);
        letters.wait(count);
    }
    let path = format!("/channels/{}", made["channel_id"].as_str().expect("an id"));
    tenant.patch(&path, &json!({"addresses": ["ada@acme.com"]})).ok(200);
    assert_eq!(states(&tenant), ["confirmed"]);
    tenant.delete(&format!("/members/{}", member["member_id"].as_str().expect("an id")));
    assert_eq!(states(&tenant), ["unconfirmed"]);
    assert_eq!(test(&tenant, &made)["error"], "no_recipients");
    assert_eq!(header(&letters.wait(1)[0].1, "Subject"), "Do you want messages about figures?");
}

#[test]
fn an_alert_reaches_a_hundred_addresses_once_each_and_counts_refusals() {
    let (letters, url) = Letters::start();
    let tenant = tenant(&["--smtp-url", &url]);
    let mut addresses: Vec<_> = (0..98).map(|number| format!("member{number}@acme.com")).collect();
    addresses.extend(["later@acme.com".into(), "never@acme.com".into()]);
    for address in &addresses {
        tenant.post("/members", &json!({"email": address, "role": "member"})).ok(201);
    }
    let made = channel(&tenant, &json!(addresses));
    let alert = json!({"name": "Größe <b>", "figure": "events", "over": "day", "condition": {"above": 0}, "channels": [made["channel_id"]]});
    tenant.post(&tenant.path("alerts"), &alert).ok(201);
    tenant.recorded(&json!({"name": "order", "user_id": "ada"}));
    // The next try is for the address that was put off, alone.
    let mut sent = letters.wait(98);
    let message = |is_there: &dyn Fn(&Value) -> bool| {
        let began = Instant::now();
        loop {
            let alerts = tenant.get(&tenant.path("alerts")).ok(200);
            let message = &alerts["alerts"][0]["changes"][0]["messages"][0];
            if is_there(message) {
                return message.clone();
            }
            assert!(began.elapsed() < PATIENCE, "{message}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    message(&|message| message["attempts"] == 1);
    tenant.server.restart();
    sent.extend(letters.wait(1));
    assert_eq!(sent[98].0, "later@acme.com");
    let ids: std::collections::BTreeSet<_> = sent.iter().map(|(_, letter)| header(letter, "Message-ID")).collect();
    assert_eq!(ids.len(), 99);
    assert!(
        sent.iter().all(|(_, letter)| letter.contains("Events: 1. This is above 0.") && letter.contains("/mail/")),
        "{}",
        sent[0].1
    );
    let done = message(&|message| message["status"] == "delivered");
    let counts = (&done["accepted"], &done["refused"], &done["attempts"], &done["last_status"]);
    assert_eq!(counts, (&json!(99), &json!(1), &json!(2), &json!(250)));
    letters.wait(0);
}

#[test]
fn addresses_are_checked_and_a_server_without_mail_says_so() {
    let (_, url) = Letters::start();
    let with_mail = tenant(&["--smtp-url", &url]);
    let many: Vec<_> = (0..101).map(|number| format!("a{number}@b.example")).collect();
    for (addresses, param) in [
        (json!([]), "addresses"),
        (json!(["nobody"]), "addresses"),
        (json!(["a@b.example\r\nRCPT TO:<c@d.example>"]), "addresses"),
        (json!(["ä@b.example"]), "addresses"),
        (json!(many), "addresses"),
        (json!((0..100).map(|number| format!("{number}@{}.example", "b".repeat(50))).collect::<Vec<_>>()), "addresses"),
        (json!("a@b.example"), "addresses"),
        (json!(["root@localhost"]), "addresses"),
        (json!(["ada@[192.0.2.1]"]), "addresses"),
    ] {
        let answer = with_mail.post("/channels", &json!({"name": "a", "kind": "email", "addresses": addresses}));
        assert_refused(&addresses.to_string(), &answer, 400, "invalid_parameter", Some(param));
    }
    let refused = with_mail.post("/channels", &json!({"name": "a", "kind": "email", "url": "https://a.example"}));
    assert_refused("a URL", &refused, 400, "missing_parameter", Some("addresses"));
    let without = Tenant::new();
    let refused = without.post("/channels", &json!({"name": "a", "kind": "email", "addresses": ["a@b.example"]}));
    assert_refused("no mail server", &refused, 400, "invalid_parameter", Some("addresses"));
    for (settings, wanted) in [
        (vec!["--smtp-url", "smtps://mail.example"], "public_url"),
        (vec!["--smtp-url", "smtps://mail.example", "--public-url", "https://s.example"], "mail_from"),
        (vec!["--smtp-url", "smtps://me@mail.example", "--smtp-password-file", "/nowhere"], "smtp_password_file"),
        (vec!["--smtp-url", "smtps://me:s3cr3t@mail.example", "--public-url", "https://s.example"], "no password"),
    ] {
        let refusal = TestServer::refusal(&settings);
        assert!(refusal.contains(wanted) && !refusal.contains("s3cr3t"), "{refusal}");
    }
}

/// A real mail server, in Python. It stops with the test.
struct RealServer(Child);

impl Drop for RealServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl RealServer {
    /// Starts it. Returns its port, and its output: the receivers of its letters, one a line.
    fn start(python: &Path, dir: &Path, kind: &str) -> (Self, u16, impl Iterator<Item = String>) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mail/server.py");
        let mut child = Command::new(python)
            .arg(script)
            .arg(kind)
            .current_dir(dir)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("output")).lines().map_while(Result::ok);
        let port = lines.next().and_then(|line| line.parse().ok()).expect("a port");
        (Self(child), port, lines)
    }
}

fn python() -> Option<PathBuf> {
    let python = PathBuf::from(std::env::var_os("HEADCOUNT_ARCHIVE_PYTHON")?);
    let works = Command::new(&python).args(["-c", "import aiosmtpd"]).status().is_ok_and(|status| status.success());
    assert!(works, "{} has no aiosmtpd", python.display());
    Some(python)
}

/// Makes a certificate authority, and a certificate for `localhost`, in a folder.
fn certificates(dir: &Path) {
    let (ca_key, key) = (rcgen::KeyPair::generate().expect("a key"), rcgen::KeyPair::generate().expect("a key"));
    let mut of_ca = rcgen::CertificateParams::new(Vec::new()).expect("parameters");
    of_ca.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let ca = of_ca.self_signed(&ca_key).expect("a certificate");
    let of_server = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("parameters");
    let certificate = of_server.signed_by(&key, &rcgen::Issuer::new(of_ca, ca_key)).expect("a certificate");
    for (name, text) in [("ca.crt", ca.pem()), ("tls.crt", certificate.pem()), ("tls.key", key.serialize_pem())] {
        std::fs::write(dir.join(name), text).expect("it is written");
    }
}

#[test]
fn a_real_server_takes_letters_by_tls_and_from_the_right_user_alone() {
    let Some(python) = python() else {
        eprintln!("SKIPPED: HEADCOUNT_ARCHIVE_PYTHON names no Python with aiosmtpd, so that no real mail server takes a letter");
        return;
    };
    let dir = tempfile::tempdir().expect("a folder");
    certificates(dir.path());
    std::fs::write(dir.path().join("right"), "sésame\n").expect("it is written");
    std::fs::write(dir.path().join("wrong"), "simsim\n").expect("it is written");
    let ca = dir.path().join("ca.crt");
    for (kind, scheme, host, password, trusted, expected) in [
        ("tls", "smtps", "localhost", "right", true, None),
        ("starttls", "smtp", "localhost", "right", true, None),
        ("tls", "smtps", "localhost", "wrong", true, Some("sign_in_failed")),
        ("tls", "smtps", "127.0.0.1", "right", true, Some("tls_failed")),
        ("starttls", "smtp", "localhost", "right", false, Some("tls_failed")),
        ("plain", "smtp", "localhost", "right", true, Some("no_starttls")),
    ] {
        let (_server, port, mut receivers) = RealServer::start(&python, dir.path(), kind);
        let (url, file) = (format!("{scheme}://me%40acme.com@{host}:{port}"), dir.path().join(password));
        let settings = ["--smtp-url", &url, "--smtp-password-file", file.to_str().expect("UTF-8")];
        let ca = ["--smtp-ca", ca.to_str().expect("UTF-8")];
        let tenant = tenant(&[&settings[..], &ca[..if trusted { 2 } else { 0 }]].concat());
        tenant.post("/members", &json!({"email": "ada@acme.com", "role": "member"})).ok(201);
        let made = channel(&tenant, &json!(["ada@acme.com"]));
        let tested = test(&tenant, &made);
        assert_eq!(
            (&tested["delivered"], &tested["error"]),
            (&json!(expected.is_none()), &json!(expected)),
            "{kind} {host} {tested}"
        );
        if expected.is_none() {
            assert_eq!(receivers.next().as_deref(), Some("ada@acme.com"), "{kind}");
        }
    }
}
