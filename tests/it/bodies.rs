//! How large bodies may be: as sent, in chunks, and decompressed.

use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use brotli::enc::BrotliEncoderParams;
use serde_json::json;

use crate::client::{Answer, Call};
use crate::errors::assert_refused;
use crate::paths::{filled, operations};
use crate::tenant::Tenant;

const EVENT_BYTES: usize = 64 << 10;
const BATCH_BYTES: usize = 4 << 20;
const ENCODINGS: [&str; 3] = ["gzip", "br", "zstd"];

/// An event of this size. An unknown field makes it large.
fn event(bytes: usize) -> Vec<u8> {
    padded(r#"{"name": "a", "user_id": "ada", "padding": ""#, r#""}"#, bytes)
}

fn batch(bytes: usize) -> Vec<u8> {
    padded(r#"{"events": [{"name": "a", "user_id": "ada"}], "padding": ""#, r#""}"#, bytes)
}

fn padded(begin: &str, end: &str, bytes: usize) -> Vec<u8> {
    let body = format!("{begin}{}{end}", "x".repeat(bytes - begin.len() - end.len()));
    assert_eq!(body.len(), bytes);
    body.into_bytes()
}

pub(crate) fn compressed(encoding: &str, body: &[u8]) -> Vec<u8> {
    match encoding {
        "gzip" => {
            let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            writer.write_all(body).unwrap();
            writer.finish().unwrap()
        }
        "br" => {
            let mut writer = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 22);
            writer.write_all(body).unwrap();
            writer.into_inner()
        }
        _ => zstd::bulk::compress(body, 3).unwrap(),
    }
}

fn assert_taken(what: &str, answer: &Answer) {
    assert_eq!(answer.status, 202, "{what}: {}", answer.text());
}

fn assert_too_large(what: &str, answer: &Answer) {
    assert_refused(what, answer, 413, "body_too_large", None);
}

#[test]
fn events_have_64_kib_and_batches_4_mib() {
    let tenant = Tenant::new();
    let token = tenant.token("member", &["events:write"], None);
    let server = tenant.path("track");
    let server_batch = tenant.path("batch");
    let send = |path: &str, body: Vec<u8>| {
        let call =
            if path.starts_with("/projects") { Call::post(path).bearer(&token) } else { Call::post(path).key(&tenant.key) };
        tenant.send(call.text("application/json", body))
    };
    for path in ["/i", "/track", &server] {
        assert_taken(path, &send(path, event(EVENT_BYTES)));
        assert_too_large(path, &send(path, event(EVENT_BYTES + 1)));
        assert_too_large(path, &send(path, event(BATCH_BYTES)));
    }
    for path in ["/i/batch", &server_batch] {
        assert_taken(path, &send(path, batch(BATCH_BYTES)));
        assert_too_large(path, &send(path, batch(BATCH_BYTES + 1)));
    }
    let text = tenant.send(Call::post("/i").key(&tenant.key).text("text/plain", event(EVENT_BYTES + 1)));
    assert_too_large("a beacon", &text);
}

#[test]
fn chunked_bodies_have_the_same_limits() {
    let tenant = Tenant::new();
    let send = |path: &str, body: Vec<u8>, size: usize| {
        let chunks = body.chunks(size).map(<[u8]>::to_vec).collect::<Vec<_>>();
        tenant.send(Call::post(path).key(&tenant.key).chunked(chunks))
    };
    for size in [1_000, 16_384, EVENT_BYTES + 1] {
        assert_taken("in chunks", &send("/track", event(EVENT_BYTES), size));
        assert_too_large("in chunks", &send("/track", event(EVENT_BYTES + 1), size));
    }
    assert_taken("byte by byte", &send("/track", event(100), 1));
    assert_taken("a batch in chunks", &send("/i/batch", batch(BATCH_BYTES), 65_536));
    assert_too_large("a batch in chunks", &send("/i/batch", batch(BATCH_BYTES + 1), 65_536));
}

#[test]
fn decompressed_bodies_have_the_same_limits() {
    let tenant = Tenant::new();
    for encoding in ENCODINGS {
        let send = |path: &str, body: &[u8]| {
            let call = Call::post(path).key(&tenant.key).header("content-encoding", encoding);
            tenant.send(call.text("application/json", compressed(encoding, body)))
        };
        assert_taken(encoding, &send("/track", &event(EVENT_BYTES)));
        assert_too_large(encoding, &send("/track", &event(EVENT_BYTES + 1)));
        assert_taken(encoding, &send("/i/batch", &batch(BATCH_BYTES)));
        assert_too_large(encoding, &send("/i/batch", &batch(BATCH_BYTES + 1)));
        assert_too_large(&format!("{encoding} bomb"), &send("/track", &event(60_000_000)));
        assert_too_large(&format!("{encoding} bomb in a batch"), &send("/i/batch", &batch(60_000_000)));
        let whole = compressed(encoding, &event(EVENT_BYTES + 1));
        let chunks = whole.chunks(16).map(<[u8]>::to_vec).collect::<Vec<_>>();
        let call = Call::post("/track").key(&tenant.key).header("content-encoding", encoding).chunked(chunks);
        assert_too_large(&format!("{encoding} in chunks"), &tenant.send(call));
    }
    assert_eq!(tenant.users(&tenant.project), 1);
}

#[test]
fn bodies_that_are_not_what_their_encoding_says_are_refused() {
    let tenant = Tenant::new();
    let send = |encoding: &str, body: Vec<u8>| {
        tenant.send(Call::post("/track").key(&tenant.key).header("content-encoding", encoding).text("application/json", body))
    };
    for encoding in ENCODINGS {
        let plain = send(encoding, event(200));
        assert_refused(encoding, &plain, 400, "invalid_encoding", None);
        let mut cut = compressed(encoding, &event(2_000));
        cut.truncate(cut.len() / 2);
        assert_refused(&format!("{encoding}, cut"), &send(encoding, cut), 400, "invalid_encoding", None);
        for trailing in [&b"more"[..], &[0; 100], b"{"] {
            let mut longer = compressed(encoding, &event(2_000));
            longer.extend_from_slice(trailing);
            assert_refused(&format!("{encoding}, with more"), &send(encoding, longer), 400, "invalid_encoding", None);
        }
    }
    for encoding in ["deflate", "compress", "gzip, br", "rot13"] {
        assert_refused(encoding, &send(encoding, event(200)), 415, "unsupported_media_type", None);
    }
    assert_taken("identity", &send("identity", event(200)));
    assert_taken("GZIP", &send("GZIP", compressed("gzip", &event(200))));
}

/// A few bytes may ask for a window of gigabytes.
#[test]
fn windows_are_as_large_as_http_allows() {
    let tenant = Tenant::new();
    let send = |encoding: &str, body: Vec<u8>| {
        tenant.send(Call::post("/track").key(&tenant.key).header("content-encoding", encoding).text("application/json", body))
    };
    let brotli = |window_bits: i32, large_window: bool, body: &[u8]| {
        let parameters = BrotliEncoderParams { lgwin: window_bits, large_window, quality: 5, ..Default::default() };
        let mut compressed = Vec::new();
        brotli::BrotliCompress(&mut &*body, &mut compressed, &parameters).unwrap();
        compressed
    };
    let zstd = |window_log: u32, body: &[u8]| {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
        encoder.window_log(window_log).unwrap();
        // Two parts, so that the encoder does not know the length and keeps to the window.
        body.chunks(body.len() / 2 + 1).for_each(|part| encoder.write_all(part).unwrap());
        encoder.finish().unwrap()
    };
    let small = event(2_000);
    for window_bits in [10, 16, 22, 24] {
        assert_taken(&format!("brotli of {window_bits}"), &send("br", brotli(window_bits, false, &small)));
        assert_taken(&format!("brotli of {window_bits}"), &send("br", brotli(window_bits, false, &event(EVENT_BYTES))));
        let bomb = send("br", brotli(window_bits, false, &event(20_000_000)));
        assert_too_large(&format!("a bomb of brotli of {window_bits}"), &bomb);
    }
    for window_log in [10, 20, 23] {
        assert_taken(&format!("zstd of {window_log}"), &send("zstd", zstd(window_log, &small)));
    }
    for window_bits in [25, 30] {
        let answer = send("br", brotli(window_bits, true, &small));
        assert_refused(&format!("brotli of {window_bits}"), &answer, 400, "invalid_encoding", None);
    }
    for window_log in [24, 27] {
        let answer = send("zstd", zstd(window_log, &small));
        assert_refused(&format!("zstd of {window_log}"), &answer, 400, "invalid_encoding", None);
    }
}

#[test]
fn questions_may_be_compressed_too() {
    let tenant = Tenant::new();
    tenant.recorded(&json!({"name": "a", "user_id": "ada"}));
    for encoding in ENCODINGS {
        let call = Call::post(tenant.path("analytics/count-unique-users-per-day")).bearer(&tenant.token);
        let call = call.header("content-encoding", encoding).text("application/json", compressed(encoding, b"{}"));
        assert_eq!(tenant.send(call).ok(200)["total_unique_users"], 1, "{encoding}");
    }
}

#[test]
fn an_announced_length_over_the_limit_is_refused_at_once() {
    let tenant = Tenant::new();
    // No body follows: a server that waits for it would not answer.
    let head = Call::post("/track").key(&tenant.key).header("content-length", "65537").header("content-type", "application/json");
    assert_too_large("announced", &tenant.send(head));
}

#[test]
fn an_event_over_its_limit_in_a_batch_is_named() {
    let tenant = Tenant::new();
    let large = String::from_utf8(event(EVENT_BYTES + 1)).unwrap();
    let fitting = String::from_utf8(event(EVENT_BYTES)).unwrap();
    let body = format!("{{\"events\": [{{\"name\": \"a\"}}, {large}, {fitting}]}}");
    let answer = tenant.send(Call::post("/i/batch").key(&tenant.key).text("application/json", body)).ok(202);
    assert_eq!((&answer["recorded"], &answer["errors"][0]["index"]), (&json!(2), &json!(1)), "{answer}");
    assert_eq!(answer["errors"].as_array().unwrap().len(), 1);
}

/// A URL is shorter than a body can be: the reader of the request's head refuses longer ones.
#[test]
fn the_pixels_event_fits_a_url() {
    let tenant = Tenant::new();
    let send = |bytes: usize| {
        let data = URL_SAFE_NO_PAD.encode(event(bytes));
        tenant.send(Call::get(format!("/i?pk={}&d={data}", tenant.key)))
    };
    assert_eq!(send(48_000).status, 200);
    for bytes in [EVENT_BYTES, EVENT_BYTES + 1, 2 * EVENT_BYTES] {
        let answer = send(bytes);
        assert!((400..500).contains(&answer.status), "{bytes} bytes: {} {}", answer.status, answer.text());
    }
    assert_eq!(tenant.users(&tenant.project), 1);
}

/// Whoever reads JSON by calling itself must stop in time.
#[test]
fn deeply_nested_bodies_are_harmless() {
    let tenant = Tenant::capable();
    let deep = format!("{}{}", "[".repeat(30_000), "]".repeat(30_000));
    let unclosed = "{\"a\":".repeat(10_000);
    for operation in operations().filter(|operation| operation.body.is_some()) {
        for field in ["name", "filters", "fx_rates", "scopes", "allowed_origins", "events", "metadata", "more"] {
            for value in [&deep, &unclosed] {
                let call = Call::new(operation.method, filled(operation.path, &tenant)).bearer(&tenant.token);
                let answer = tenant.send(call.text("application/json", format!("{{\"{field}\": {value}}}")));
                // An event loses what nests too deep.
                let is_harmless = answer.status == 400 || answer.status == 202;
                assert!(is_harmless, "{} {} {field}: {}", operation.method, operation.path, answer.text());
            }
        }
    }
    for (field, status) in [("name", 400), ("metadata", 202), ("_acOverrides", 202), ("value", 202), ("timestamp", 400)] {
        let body = format!("{{\"name\": \"a\", \"{field}\": {deep}}}");
        let answer = tenant.send(Call::post("/track").key(&tenant.key).text("application/json", body));
        assert_eq!(answer.status, status, "{field}");
    }
    let ignored = format!("{{\"name\": \"a\", \"more\": {deep}}}");
    assert_taken("ignored", &tenant.send(Call::post("/track").key(&tenant.key).text("application/json", ignored)));
    assert_refused(
        "deep",
        &tenant.send(Call::post("/track").key(&tenant.key).text("text/plain", deep)),
        400,
        "invalid_json",
        None,
    );
}

#[test]
fn answers_are_compressed_as_asked() {
    let tenant = Tenant::new();
    let call = |encoding: &str| {
        let target = tenant.path("revenue/timeseries?start_date=2024-01-01&end_date=2024-12-31");
        tenant.send(Call::get(target).bearer(&tenant.token).header("accept-encoding", encoding))
    };
    let plain = call("identity");
    assert_eq!(plain.header("content-encoding"), None);
    for encoding in ENCODINGS {
        let answer = call(encoding);
        assert_eq!(answer.header("content-encoding"), Some(encoding));
        let vary = answer.header("vary").unwrap_or_default().to_ascii_lowercase();
        assert!(vary.contains("accept-encoding"), "vary: {vary}");
        assert_eq!(decompressed(encoding, &answer.body), plain.body, "{encoding}");
    }
    assert_eq!(call("").header("content-encoding"), None);
    assert_eq!(call("gzip;q=0").header("content-encoding"), None);
}

fn decompressed(encoding: &str, body: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    let mut reader: Box<dyn std::io::Read + '_> = match encoding {
        "gzip" => Box::new(flate2::read::GzDecoder::new(body)),
        "br" => Box::new(brotli::Decompressor::new(body, 4096)),
        _ => Box::new(zstd::stream::read::Decoder::new(body).unwrap()),
    };
    reader.read_to_end(&mut plain).unwrap();
    plain
}
