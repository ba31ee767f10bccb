//! Mail servers that behave badly.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::Arc;

use parking_lot::Mutex;

use super::*;

/// What a server does instead of taking letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Nothing,
    /// It is silent after the greeting's first bytes.
    Silent,
    /// It refuses the sender.
    Sender,
    /// It ends the connection amid the first letter.
    CutInData,
    /// It ends the connection after the first letter.
    CutAfterOne,
}

/// A server on a thread of its own, for some connections. It defers `later@…`, and refuses `never@…`.
struct Server {
    url: String,
    letters: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start(fault: Fault, capabilities: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("smtp://127.0.0.1:{}", listener.local_addr().unwrap().port());
        let letters = Arc::new(Mutex::new(Vec::new()));
        let taken = Arc::clone(&letters);
        std::thread::spawn(move || {
            for stream in listener.incoming().take(3) {
                serve(stream.unwrap(), fault, capabilities, &taken);
            }
        });
        Self { url, letters }
    }

    fn settings(&self, query: &str) -> MailSettings {
        let from = "Figures <figures@stats.example>";
        MailSettings::new((&format!("{}{query}", self.url), None), from, "https://stats.example", None).unwrap()
    }

    /// Hands over a letter to each address. Returns what became of them, by their places.
    fn hand_over(&self, query: &str, to: &[&str]) -> HandedOver {
        let settings = self.settings(query);
        let message = Message {
            title: "Alert: Größe\r\nBcc: all@evil.example".into(),
            lines: vec!["Events: 3 €".into(), ".".into()],
            link: None,
        };
        let letter =
            |(place, to): (usize, &&str)| (place as u64, settings.letter(to, "a.1", &message, "https://l.example/x").unwrap());
        settings.hand_over(to.iter().enumerate().map(letter).collect())
    }
}

fn serve(stream: std::net::TcpStream, fault: Fault, capabilities: &str, letters: &Mutex<Vec<String>>) {
    let (mut reader, mut writer) = (BufReader::new(stream.try_clone().unwrap()), stream);
    if fault == Fault::Silent {
        writer.write_all(b"220 ").unwrap();
        let _ = reader.read_line(&mut String::new());
        return;
    }
    let mut say = |text: &str| writer.write_all(format!("{text}\r\n").as_bytes()).is_ok();
    say("220 test");
    let mut line = String::new();
    let mut count = 0;
    while reader.read_line(&mut line).unwrap_or(0) > 0 {
        let command = line.trim_end().to_ascii_uppercase();
        if command.starts_with("EHLO") {
            say(&format!("250-test{capabilities}\r\n250 SIZE 1000000"));
        } else if command == "DATA" {
            if fault == Fault::CutInData {
                return;
            }
            say("354 go on");
            let mut letter = String::new();
            while reader.read_line(&mut letter).unwrap() > 0 && !letter.ends_with("\r\n.\r\n") {}
            letters.lock().push(letter);
            say("250 taken");
            count += 1;
            if fault == Fault::CutAfterOne && count == 1 {
                return;
            }
        } else if command.starts_with("MAIL") && fault == Fault::Sender {
            say("550 not you");
        } else if command.contains("<LATER@") {
            say("451 later");
        } else if command.contains("<NEVER@") {
            say("550 nobody");
        } else if command == "QUIT" {
            say("221 bye");
            return;
        } else {
            say("250 ok");
        }
        line.clear();
    }
}

const PLAIN: &str = "?tls=none";

#[test]
fn each_address_has_its_own_fate() {
    let server = Server::start(Fault::Nothing, "");
    let handed = server.hand_over(PLAIN, &["a@b.example", "later@b.example", "never@b.example", "c@b.example"]);
    let mailed = Mailed { accepted: vec![0, 3], refused: vec![2] };
    assert_eq!(handed, HandedOver { mailed, is_connected: true, refusal: Some(550), failure: Some(Ok(451)) });
    let letters = server.letters.lock().clone();
    assert_eq!(letters.len(), 2);
    for wanted in [
        "MIME-Version: 1.0",
        "Message-ID: <a.1@stats.example>",
        "List-Unsubscribe: <https://l.example/x>",
        "List-Unsubscribe-Post: List-Unsubscribe=One-Click",
        "Auto-Submitted: auto-generated",
        "Subject: Alert: =?utf-8?b?",
        "Events: 3 =E2=82=AC\r\n..\r\n",
    ] {
        assert!(letters[0].contains(wanted), "{wanted}: {}", letters[0]);
    }
    assert!(!letters[0].contains("\nBcc:"), "{}", letters[0]);
}

#[test]
fn a_failure_leaves_the_rest_for_the_next_try() {
    let all = ["a@b.example", "c@b.example"];
    for (fault, query, accepted, failure) in [
        (Fault::Sender, PLAIN, vec![], Ok(550)),
        (Fault::CutInData, PLAIN, vec![], Err("connection_lost")),
        (Fault::CutAfterOne, PLAIN, vec![0], Err("connection_lost")),
        (Fault::Nothing, "", vec![], Err("no_starttls")),
    ] {
        let handed = Server::start(fault, "").hand_over(query, &all);
        let mailed = Mailed { accepted, refused: vec![] };
        let is_connected = failure != Err("no_starttls");
        assert_eq!(handed, HandedOver { mailed, is_connected, refusal: None, failure: Some(failure) }, "{fault:?}");
    }
    // The server says that it is ready for TLS, and then is not.
    let handed = Server::start(Fault::Nothing, "\r\n250-STARTTLS").hand_over("", &all);
    assert!(matches!(handed, HandedOver { failure: Some(Err("tls_failed" | "connection_lost")), .. }), "{handed:?}");
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Server { url: format!("smtp://{}", gone.local_addr().unwrap()), letters: Arc::default() };
    drop(gone);
    assert_eq!(server.hand_over(PLAIN, &all).failure, Some(Err("connect_failed")));
}

#[test]
fn a_silent_server_is_not_waited_for() {
    let began = Stopwatch::now();
    let handed = Server::start(Fault::Silent, "").hand_over(PLAIN, &["a@b.example"]);
    assert_eq!(handed.failure, Some(Err("timeout")));
    assert!(began.elapsed() < 2 * TIMEOUT);
}

#[test]
fn settings_are_whole_or_refused() {
    let from = "a@b.example";
    let read = |url: &str, password: Option<&str>, from: &str| {
        let settings = MailSettings::new((url, password.map(str::to_owned)), from, "https://s.example", None);
        settings.map(|settings| (settings.port, settings.encryption)).map_err(|(_, reason)| reason)
    };
    for (url, password, expected) in [
        ("smtps://mail.example", None, Ok((465, Encryption::Tls))),
        ("smtp://me%40b.example@mail.example", Some("p\n"), Ok((587, Encryption::StartTls))),
        ("smtp://[::1]:2525?tls=none", None, Ok((2_525, Encryption::Plain))),
        ("smtp://me@mail.example?tls=none", Some("p"), Err("must have no user with tls=none")),
        ("smtps://me@mail.example", None, Err("has a user: put the password into a file, and set smtp_password_file")),
        ("smtps://mail.example", Some("p"), Err("must have a user, since smtp_password_file is set")),
        ("smtps://me:secret@mail.example", Some("p"), Err("must have no password: put it into the file smtp_password_file")),
    ] {
        assert_eq!(read(url, password, from), expected, "{url}");
    }
    for url in ["mail.example", "https://mail.example", "smtp://mail.example?tls=optional", "smtps://mail.example/x", "smtps://"]
    {
        assert!(read(url, None, from).is_err(), "{url}");
    }
    assert!(read("smtps://mail.example", None, "nobody").is_err());
    for ca in ["", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        let settings = MailSettings::new(("smtps://mail.example", None), from, "https://s.example", Some(ca));
        assert_eq!(settings.err().map(|(name, _)| name), Some("smtp_ca"), "{ca}");
    }
    assert_eq!(name_of("https://192.0.2.1:8443").to_string(), "[192.0.2.1]");
}
