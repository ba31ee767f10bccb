//! Bodies as careless programs and random ones send them: the same for the same seed.

const BODIES: [&str; 6] = [
    r#"{"name":"pageview","url":"https://shop.example/%C3%BCber?utm_source=x","anonymous_id":"a1","referrer":"https://www.google.com/"}"#,
    r#"{"name":"order","user_id":"ada","value":49.90,"currency":"EUR","external_id":"o-1","timestamp":"2026-11-19T10:00:00Z","metadata":{"plan":"pro","a":{"b":[1,2.5,null]}}}"#,
    r#"{"name":"identify","user_id":"ada","anonymous_id":"a1","metadata":{"email":"ada@acme.com","name":"Ada \u00e9 \ud83d\ude00"},"privacy_categories":"analytics","ps":"gpc"}"#,
    r#"{"name":"group","group_type":"team","group_id":"t1","notify":true,"message":"hello","channel":"sales","_acOverrides":{"source":"partner","medium":"x"},"pc":"","timestamp":1795186000000,"_sent_at":1795186001000}"#,
    r#"{"type":"track","event":"Order Completed","userId":"u","messageId":"m","properties":{"revenue":"12.5","order_id":7,"products":[{"sku":1}]},"context":{"page":{"url":"https://shop.example/"},"campaign":{"source":"s"}},"timestamp":"2026-11-19T10:00:00Z","sentAt":"2026-11-19T10:00:01Z"}"#,
    r#"{"batch":[{"type":"group","groupId":"g","traits":{"email":"x@y.z","domain":"y.z"},"anonymousId":"a"},{"type":"alias","previousId":"a","userId":"b"},{"type":"page","name":"Home"}],"sentAt":1795186800}"#,
];
const NAMES: [&str; 32] = [
    "name",
    "notify",
    "message",
    "user_id",
    "anonymous_id",
    "referrer",
    "screen",
    "language",
    "url",
    "hostname",
    "metadata",
    "channel",
    "value",
    "currency",
    "external_id",
    "group_id",
    "group_type",
    "privacy_categories",
    "pc",
    "privacy_signals",
    "ps",
    "consent_source",
    "_acOverrides",
    "timestamp",
    "_sent_at",
    "userId",
    "ip",
    "user_agent",
    "event",
    "properties",
    "traits",
    "context",
];
const VALUES: [&str; 44] = [
    "null",
    "true",
    "false",
    "0",
    "-0.0",
    "5",
    "1e999",
    "-1e-999",
    "3.3000000000000003",
    "12345678901234567890123456789",
    "1714989600",
    "1714989600.25",
    "1795186800000",
    "99999999999",
    "\"\"",
    "\" \"",
    "\"undefined\"",
    "\"NULL\"",
    "\"[object Object]\"",
    "\"49.90\"",
    "\"12,50 €\"",
    "\" usd \"",
    "\"EURO\"",
    "\"JPY\"",
    "\"2026-11-19T10:00:00+02:00\"",
    "\"yesterday\"",
    "\"1989-12-31T23:59:59Z\"",
    "\"1714989600000\"",
    "\"/%C3%BCber/%2f%zz%\"",
    "\"https://a%41@b.example:80/%41?q=%41#%41\"",
    "\"\\ud83d\"",
    "\"\\ude00\\ud83d\\ude00x\"",
    "\"\\u0000\\n\\\\\"",
    "[]",
    "{}",
    "[[[[[[[[[[[5]]]]]]]]]]]",
    "{\"a\":{\"b\":{\"c\":{\"d\":{\"e\":{\"f\":{\"g\":{\"h\":{\"i\":1}}}}}}}}}",
    "{\"source\":5,\"medium\":[],\"channel\":\"Audio\"}",
    "{\"email\":\"a@b.example\",\"email\":7}",
    "\"team\"",
    "\"Team X\"",
    "\"gpc, dnt\"",
    "\"analytics\"",
    "[\"analytics\"]",
];
/// Bytes that JSON has a use for, and some that are no UTF-8.
const BYTES: &[u8] = b"{}[]\",:\\u0ed83 \n-+.eE\x00\xff\xc3\xa9\xf0\x9f%/";

struct Random(u64);

impl Random {
    /// Returns a number below `end`.
    fn below(&mut self, end: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % end.max(1) as u64).unwrap()
    }

    fn pick<'t, T>(&mut self, of: &'t [T]) -> &'t T {
        &of[self.below(of.len())]
    }
}

/// The body of a seed, of at most some 64 KiB.
pub(crate) fn body(seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    if random.below(50) == 0 {
        return (0..random.below(200))
            .map(|_| if random.below(2) == 0 { *random.pick(BYTES) } else { random.below(256) as u8 })
            .collect();
    }
    let mut body = (*random.pick(&BODIES)).to_owned();
    for _ in 0..random.below(5) {
        add_field(&mut random, &mut body);
    }
    let mut body = body.into_bytes();
    if random.below(3) == 0 {
        for _ in 0..=random.below(4) {
            spoil(&mut random, &mut body);
        }
    }
    body
}

/// Adds a field to an object; it may be there already.
fn add_field(random: &mut Random, body: &mut String) {
    let name = *random.pick(&NAMES);
    let value = match random.below(8) {
        0 => long_text(random),
        1 => large_object(random),
        2 => format!("\"{}\"", "%C3%BC/é".repeat(random.below(900))),
        3 => format!("{}.{}", random.below(2_000_000_000_000), random.below(1_000_000_000)),
        _ => (*random.pick(&VALUES)).to_owned(),
    };
    let field = format!("\"{name}\":{value}");
    match random.below(2) {
        0 => body.insert_str(body.len() - 1, &format!(",{field}")),
        _ => body.insert_str(1, &format!(" {field},\t")),
    }
}

fn long_text(random: &mut Random) -> String {
    let letters = *random.pick(&["x", "é", "😀", "\\u00e9", "\\ud83d", "a?b=c&", "/"]);
    let around = *random.pick(&[100, 128, 512, 1_024, 2_048, 4_096, 8_192, 12_000]);
    format!("\"{}\"", letters.repeat((around / letters.len() + random.below(3)).max(1) - 1))
}

fn large_object(random: &mut Random) -> String {
    let value = *random.pick(&VALUES);
    let key = |number: usize| if number % 50 == 7 { "k".repeat(120 + number % 20) } else { format!("k{number}") };
    let fields: Vec<_> = (0..random.below(200)).map(|number| format!("\"{}\":{value}", key(number))).collect();
    format!("{{{}}}", fields.join(","))
}

/// Changes, removes, doubles or adds bytes.
fn spoil(random: &mut Random, body: &mut Vec<u8>) {
    let place = random.below(body.len());
    match random.below(6) {
        0 => body.truncate(place),
        1 if !body.is_empty() => body[place] = *random.pick(BYTES),
        2 if !body.is_empty() => body[place] ^= 1 << random.below(8),
        3 => body.insert(place, *random.pick(BYTES)),
        4 => {
            let end = (place + random.below(40)).min(body.len());
            drop(body.drain(place..end));
        }
        _ => {
            let end = (place + random.below(40)).min(body.len());
            let part = body[place..end].to_vec();
            body.splice(place..place, part);
        }
    }
}
