//! Events of other browsers, with client hints: true ones, contradictory ones, and what is none.

use crate::chosen::object;
use crate::history::{History, Step};
use crate::rng::Rng;
use headcount_model::{Json, Question};

use super::passive::is_of_server;

/// Tells the random numbers of hints from those of the rest.
const HINTS: u64 = 0xc1e7;
/// The field of an event that has the headers of its request, and that nobody else reads.
const HEADERS: &str = "sent_headers";

const AGENTS: [&str; 13] = [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Safari/537.36",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Safari/537.36 Edg/124.0.0.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Safari/537.36 OPR/110.0.0.0",
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Mobile Safari/537.36",
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Safari/537.36",
    "Mozilla/5.0 (Linux; Android 14; SM-S921B; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/124.0.6367.82 Mobile Safari/537.36",
    "Mozilla/5.0 (Linux; Android 9; BRAVIA 4K VH2) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/112.0.0.0 Safari/537.36",
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Safari/537.36",
    "Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Safari/537.36",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Safari/537.36",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 Safari/605.1.15",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:125.0) Gecko/20100101 Firefox/125.0",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 Mobile/15E148 Safari/604.1",
];
const BRANDS: [&str; 11] = [
    r#""Chromium";v="124", "Google Chrome";v="124", "Not-A.Brand";v="99""#,
    r#""Chromium";v="124","Google Chrome";v="124""#,
    r#""Brave";v="124", "Chromium";v="124", "Not-A.Brand";v="99""#,
    r#""Not/A)Brand";v="8", "Chromium";v="124", "DuckDuckGo";v="124""#,
    r#""Chromium";v="124", "Microsoft Edge";v="124""#,
    r#""Opera";v="110", "Chromium";v="124""#,
    r#""Samsung Internet";v="25.0", "Chromium";v="121""#,
    r#""Chromium";v="124", "Vivaldi";v="6.7""#,
    r#""Android WebView";v="124", "Chromium";v="124""#,
    r#""My Browser";v="1""#,
    "",
];
const FULL: [&str; 6] = [
    r#""Chromium";v="124.1.6367.60", "Google Chrome";v="124.1.6367.61", "Not-A.Brand";v="99.0.0.0""#,
    r#""Brave";v="124.1.65.114", "Chromium";v="124.1.6367.60""#,
    r#""Microsoft Edge";v="124.1.2478.51", "Chromium";v="124.1.6367.60""#,
    r#""Google Chrome";v="<script>", "Chromium";v="124.1.6367.60""#,
    r#""Google Chrome";v="124.1.000000000000000000000000000000000""#,
    r#""Google Chrome", "Opera";v="110.1""#,
];
const PLATFORMS: [&str; 10] = [
    "\"Windows\"",
    "\"Windows\"",
    "\"Android\"",
    "\"macOS\"",
    "\"Linux\"",
    "\"Chrome OS\"",
    "\"Fuchsia\"",
    "\"iOS\"",
    "Windows",
    "\"Windows\", \"Android\"",
];
const VERSIONS: [&str; 9] =
    ["\"15.0.0\"", "\"19.0.0\"", "\"13.0.0\"", "\"10.0.0\"", "\"0.3.0\"", "\"\"", "15.0.0", "\"-15\"", "\"99999999999.0\""];
const MODELS: [&str; 7] =
    ["\"SM-X710\"", "\"Pixel Tablet\"", "\"BRAVIA 4K VH2\"", "\"SM-S921B\"", "\"\"", "SM-X710", "\"SM-X710\";a=?0"];
const FACTORS: [&str; 9] = [
    "\"Tablet\"",
    "\"Mobile\"",
    "\"Desktop\"",
    "\"XR\"",
    "\"EInk\"",
    "\"Mobile\", \"Watch\"",
    "\"Desktop\", \"Tablet\"",
    "Tablet",
    "\"Phone\"",
];
/// What can be read as nothing, whatever it is sent as: a token, lists that don't end, other
/// characters, too much.
const MALFORMED: [&str; 8] = [
    "Brave 124",
    r#""Brave";v="124","#,
    r#""Brave";v="124"#,
    r#""Brave";V="124""#,
    r#""Brave";v="#,
    r#""Brave" "Chromium""#,
    "\"Bráve\";v=\"124\"",
    r#", "Brave""#,
];
/// The fields of hints, in the order of what they can be.
const NAMES: [&str; 7] = [
    "sec-ch-ua",
    "sec-ch-ua-full-version-list",
    "sec-ch-ua-platform",
    "sec-ch-ua-platform-version",
    "sec-ch-ua-model",
    "sec-ch-ua-form-factors",
    "sec-ch-ua-mobile",
];

/// The headers that the request of an event has.
#[must_use]
pub fn sent_headers(body: &str) -> Vec<(String, String)> {
    if !body.contains(HEADERS) {
        return Vec::new();
    }
    match Json::parse(body).map(|body| body.field(HEADERS).clone()) {
        Ok(Json::Object(fields)) => {
            fields.iter().filter_map(|(name, value)| Some((name.clone(), value.text()?.to_owned()))).collect()
        }
        _ => Vec::new(),
    }
}

/// Adds headers to some events that come alone, and questions about what they tell.
pub(crate) fn add_hints(history: &mut History) {
    let mut rng = Rng::new(history.seed ^ HINTS);
    for step in &mut history.steps {
        if let Step::Track { body, .. } = step
            && !is_of_server(body)
            && Json::parse(body).is_ok()
            && rng.chance(70)
            && let Some(fields) = body.strip_prefix('{')
        {
            *body = format!("{{\"{HEADERS}\": {}, {fields}", headers(&mut rng));
        }
    }
    for _ in 0..8 {
        let question = question(&mut rng, history);
        let place = rng.below(history.steps.len() + 1);
        history.steps.insert(place, Step::Ask(question));
    }
    let last = (0..4).map(|_| Step::Ask(question(&mut rng, history))).collect::<Vec<_>>();
    history.steps.extend(last);
}

fn headers(rng: &mut Rng) -> Json {
    if rng.chance(30) {
        return windows(rng);
    }
    let mut headers = Vec::new();
    if rng.chance(80) {
        headers.push(("user-agent", rng.word(&AGENTS).to_owned()));
    }
    for (name, often) in NAMES.into_iter().zip([85, 40, 80, 50, 30, 15, 60]) {
        if rng.chance(often) {
            headers.push((name, hint(rng, name)));
        }
    }
    object(headers.into_iter().map(|(name, value)| (name, Json::from(value))).collect())
}

/// What a browser on Windows sends to a page that asks for all.
fn windows(rng: &mut Rng) -> Json {
    let headers = vec![
        ("user-agent", Json::from(rng.word(&AGENTS[..3]))),
        ("sec-ch-ua", Json::from(rng.word(&BRANDS[..6]))),
        ("sec-ch-ua-full-version-list", Json::from(rng.word(&FULL[..3]))),
        ("sec-ch-ua-platform", Json::from(PLATFORMS[0])),
        ("sec-ch-ua-platform-version", Json::from(rng.word(&VERSIONS[..4]))),
        ("sec-ch-ua-mobile", Json::from("?0")),
    ];
    object(headers)
}

fn hint(rng: &mut Rng, name: &str) -> String {
    let usual = match name {
        "sec-ch-ua" => rng.word(&BRANDS),
        "sec-ch-ua-full-version-list" => rng.word(&FULL),
        "sec-ch-ua-platform" => rng.word(&PLATFORMS),
        "sec-ch-ua-platform-version" => rng.word(&VERSIONS),
        "sec-ch-ua-model" => rng.word(&MODELS),
        "sec-ch-ua-form-factors" => rng.word(&FACTORS),
        _ => rng.word(&["?1", "?0", "?0", "?2", "1", "true"]),
    };
    let filler = |count: usize| format!("{}{usual}", "\"Filler\", ".repeat(count));
    match rng.below(100) {
        0..6 => rng.word(&MALFORMED).to_owned(),
        6..10 => format!("{usual},"),
        // At most 16 members, in at most 512 bytes.
        10..12 => filler(13),
        12..14 => filler(17),
        14..17 => format!("\"{}\", {usual}", "x".repeat(520)),
        _ => usual.to_owned(),
    }
}

/// A question about what agents and hints tell.
fn question(rng: &mut Rng, history: &History) -> Question {
    let project = &rng.pick(&history.projects).name;
    let path = |rest: &str| format!("/projects/{{{project}}}/analytics/{rest}");
    let fields = ["browser", "browser_version", "os", "device"];
    let first = history.days.iter().min().expect("a day").to_string();
    let last = history.days.iter().max().expect("a day").to_string();
    let mut body = vec![("start_date", Json::from(first)), ("end_date", Json::from(last))];
    let filters = [
        ("browser", r#"["Brave", "DuckDuckGo", "Edge"]"#),
        ("browser_version", r#""124.0.0.0""#),
        ("os", r#""Windows 11""#),
        ("os", r#"["Android", "ChromeOS"]"#),
        ("device", r#""tablet""#),
        ("device", r#"["mobile", "other"]"#),
    ];
    let (field, value) = *rng.pick(&filters);
    let operator = rng.word(&["is", "is", "is_not"]);
    let filter = Json::object([
        ("field", Json::from(field)),
        ("operator", Json::from(operator)),
        ("value", Json::parse(value).expect("JSON")),
    ]);
    let kind = rng.below(4);
    if kind == 0 || rng.chance(30) {
        body.push(("filters", Json::list([filter])));
    }
    match kind {
        0 => Question::post(&path("count-unique-users-per-day"), object(body)),
        1 => {
            body.push(("dimension", Json::from(rng.word(&fields))));
            Question::post(&path("breakdown"), object(body))
        }
        _ => {
            body.push(("group_by", Json::from(rng.word(&fields))));
            Question::post(&path("aggregate"), object(body))
        }
    }
}
