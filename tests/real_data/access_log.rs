//! Compares the results on the access log with the naive model, which gets the same requests from a
//! parser of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};

use flate2::read::GzDecoder;
use headcount::Engine;
use headcount::domain::filter::{Filter, Predicate};
use headcount::domain::ids::ProjectId;
use headcount::domain::money::ratio_of_counts;
use headcount::domain::queries::{Listed, Traffic, TrafficQuery, TrafficRow};
use headcount_model::text::Url;
use headcount_model::time::instant_ms;
use headcount_model::traffic::{self, traffic};
use headcount_model::{Json, Model, ProjectSetup, Sender, ServedModel};

use super::{headcount, open, window};

const LOG: &str = "tests/data/apache_access.log.gz";
const SITE: &str = "semicomplete.com";
/// The one line that is truncated within its user agent.
const TRUNCATED_LINE: usize = 8899;

/// Sites of the log that the short lists of the model lack: host, source, medium.
const KNOWN: [(&str, &str, &str); 11] = [
    ("yandex.ru", "yandex", "organic"),
    ("images.yandex.ru", "yandex", "organic"),
    ("baidu.com", "baidu", "organic"),
    ("image.baidu.com", "baidu", "organic"),
    ("search.daum.net", "daum", "organic"),
    ("r.duckduckgo.com", "duckduckgo", "organic"),
    ("t.co", "twitter", "social"),
    ("stackoverflow.com", "stackoverflow.com", "social"),
    ("serverfault.com", "serverfault.com", "social"),
    ("superuser.com", "superuser.com", "social"),
    ("askubuntu.com", "askubuntu.com", "social"),
];

/// Browsers, by the first of these tokens in a user agent of this log. Tokens without a name stand
/// for minor browsers.
const BROWSERS: [(&str, &str); 30] = [
    ("Opera 8", "Opera"),
    ("2345Explorer", ""),
    ("Opera Mini", ""),
    ("MSIE ", "Internet Explorer"),
    ("Trident/", "Internet Explorer"),
    ("Opera", "Opera"),
    ("OPR/", "Opera"),
    ("GSA/", ""),
    ("UCBrowser", ""),
    ("Instagram", ""),
    ("Iceweasel/", ""),
    ("SeaMonkey/", ""),
    ("PaleMoon/", ""),
    ("Midori/", ""),
    ("BonEcho/", ""),
    ("conkeror/", ""),
    ("Thunderbird/", ""),
    ("Firefox/", "Firefox"),
    ("Chromium/", ""),
    ("Iron/", ""),
    (" SE 2.X", ""),
    ("Version/4.0 Chrome/", ""),
    ("Chrome/", "Chrome"),
    ("CriOS/", "Chrome"),
    ("Silk/", ""),
    ("rekonq/", ""),
    ("Epiphany/", ""),
    ("konqueror", ""),
    ("Android", ""),
    ("Safari/", "Safari"),
];
/// Substrings, in lower case, of the user agents of bots and programs.
const PROGRAMS: [&str; 11] =
    ["dts agent", "bot", "+http", "daumoa", "slurp", "spider", "preview", "fetcher", "google favicon", "imageproxy", "phantomjs"];

/// A request, as an event for the model.
struct Request {
    body: String,
    agent: String,
}

/// Decodes `\xHH`, the only escape in this log. Invalid UTF-8 becomes U+FFFD.
fn unescape(text: &str) -> String {
    let mut pieces = text.split("\\x");
    let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        bytes.push(u8::from_str_radix(&piece[..2], 16).unwrap());
        bytes.extend(&piece.as_bytes()[2..]);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Converts `17/May/2015:10:05:03 +0000` to RFC 3339. The whole log is of May 2015, in UTC.
fn rfc3339(time: &str) -> String {
    let (day, clock) = (&time[..2], &time[12..20]);
    assert_eq!((&time[2..12], &time[20..]), ("/May/2015:", " +0000"));
    format!("2015-05-{day}T{clock}Z")
}

/// Returns source and medium of a referrer that the lists of the model lack.
fn known(host: &str) -> Option<(&'static str, &'static str)> {
    let of_google = ["google.", "images.google.", "encrypted.google."].iter().any(|name| host.starts_with(name));
    if of_google {
        return Some(("google", "organic"));
    }
    KNOWN.iter().find(|(known, ..)| *known == host).map(|(_, source, medium)| (*source, *medium))
}

fn request(line: &str) -> Request {
    let quoted: Vec<&str> = line.split('"').collect();
    let [before, request, _, referrer, _, agent, ..] = quoted[..] else { panic!("{line}") };
    let (address, _) = before.split_once(' ').unwrap();
    let time = before.split_once('[').unwrap().1.trim_end_matches("] ");
    let path = request.split(' ').nth(1).unwrap();
    let (referrer, agent) = (unescape(referrer), unescape(agent));
    let present = |text: &str| Json::from(Some(text.to_owned()).filter(|text| text != "-"));

    let host = Url::parse(&referrer).host.unwrap_or_default();
    let site = known(host.strip_prefix("www.").unwrap_or(&host));
    let query = Url::parse(path);
    let has = |names: &[&str]| names.iter().any(|name| query.query(name).is_some());
    let source = site.filter(|_| !has(&["utm_source", "source", "ref"])).map(|(source, _)| source.to_owned());
    let medium = site.filter(|_| !has(&["utm_medium"])).map(|(_, medium)| medium.to_owned());
    let body = Json::object([
        ("name", Json::from("pageview")),
        ("timestamp", Json::from(rfc3339(time))),
        ("url", Json::from(format!("https://{SITE}{path}"))),
        ("hostname", Json::from(SITE)),
        ("referrer", present(&referrer)),
        ("user_agent", present(&agent)),
        ("ip", Json::from(address)),
        ("_acOverrides", Json::object([("source", Json::from(source)), ("medium", Json::from(medium))])),
    ]);
    Request { body: body.to_string(), agent }
}

fn requests() -> Vec<Request> {
    let lines = BufReader::new(GzDecoder::new(std::fs::File::open(LOG).unwrap())).lines();
    let lines = lines.enumerate().filter(|(at, _)| at + 1 != TRUNCATED_LINE);
    lines.map(|(_, line)| request(&line.unwrap())).collect()
}

fn model_of(requests: &[Request]) -> Model {
    let received_ms = instant_ms("2026-01-01T00:00:00Z").unwrap();
    let mut model = ServedModel::new(received_ms).model;
    model.add_project("site", ProjectSetup { record_bots: true, ..ProjectSetup::default() });
    for request in requests {
        model.record("site", &request.body, received_ms, &Sender::server()).unwrap();
    }
    model
}

fn comparable(traffic: &Traffic) -> traffic::Traffic {
    let row = |row: &TrafficRow| (row.name.clone(), row.sessions, row.bounces);
    let rows = |list: &Listed<TrafficRow>| list.rows.iter().map(row).collect();
    traffic::Traffic {
        sessions: traffic.sessions,
        bounces: traffic.bounces,
        by_source: rows(&traffic.by_source),
        by_medium: rows(&traffic.by_medium),
        by_campaign: rows(&traffic.by_campaign),
        by_channel: rows(&traffic.by_channel),
    }
}

fn print(title: &str, rows: &[TrafficRow]) {
    println!("\n{title}: {}", rows.len());
    for TrafficRow { name, sessions, bounces } in rows {
        println!("  {sessions:>5} {bounces:>5}  {name}");
    }
}

/// Compares the visitors of each browser with the model, without bots that claim to be a browser.
async fn browsers(engine: &Engine, project: ProjectId, requests: &[Request], model: &Model) {
    let facts = model.facts();
    let mut expected: BTreeMap<&str, BTreeSet<_>> = BTreeMap::new();
    for (index, request) in requests.iter().enumerate() {
        let agent = request.agent.to_lowercase();
        let browser = BROWSERS.iter().find(|(word, _)| request.agent.contains(word)).filter(|(_, browser)| !browser.is_empty());
        if let Some((_, browser)) = browser.filter(|_| !PROGRAMS.iter().any(|word| agent.contains(word))) {
            expected.entry(browser).or_default().insert(facts.identities[index].clone());
        }
    }
    for (browser, visitors) in expected {
        let is = |field: &str, operator: &str, value: &str| Filter::new(field, operator, Some(value)).unwrap().into();
        let filters = vec![is("browser", "is", &format!("{browser:?}")), is("device", "is_not", r#""bot""#)];
        let predicate = Predicate::new(None, filters).unwrap();
        let users = engine.scans.unique_users(project, window("2015-05-17", "2015-05-20"), predicate).await.unwrap();
        println!("  {:>5}  {browser}", users.total);
        assert_eq!(users.total, visitors.len() as u64, "visitors with {browser}");
    }
}

#[tokio::test]
async fn sessions_by_source_medium_campaign_and_channel() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    headcount(&data, &["init"]);
    headcount(&data, &["import", "--format", "combined", "--hostname", SITE, "--all", "--bots", "record", LOG]);
    let (engine, project) = open(&data);
    let requests = requests();
    let model = model_of(&requests);
    for (first, last) in [("2015-05-17", "2015-05-20"), ("2015-05-18", "2015-05-18"), ("2015-05-19", "2015-05-20")] {
        let got = engine.ask(project, TrafficQuery { window: window(first, last), limit: usize::MAX }).await.unwrap();
        let mut visits = model.visits("site");
        visits.retain(|visit| (first..=last).contains(&visit.day.to_string().as_str()));
        let expected = traffic(&visits);
        print("sources", &got.by_source.rows);
        print("mediums", &got.by_medium.rows);
        print("campaigns", &got.by_campaign.rows);
        print("channels", &got.by_channel.rows);
        println!("\n{} sessions, {} bounces, {}", got.sessions, got.bounces, got.bounce_rate);
        assert_eq!(comparable(&got), expected, "from {first} to {last}");
        assert_eq!(got.bounce_rate, ratio_of_counts(got.bounces.unsigned_abs(), got.sessions.unsigned_abs()));
        assert!(!got.by_source.rows.iter().any(|row| row.name.contains(SITE)), "the site must not be a source");
    }
    println!("\nvisitors by browser");
    browsers(&engine, project, &requests, &model).await;
    engine.close().await;
}
