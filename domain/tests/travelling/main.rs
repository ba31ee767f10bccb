//! The bytes of every query and partial answer that travels between nodes. A change of these bytes
//! needs another tag.
//!
//! The values have every field filled: by a deserializer that derives each number and text from the
//! name of its field and its struct, so that fields that change places are noticed, too. Each type
//! is filled several times, so that every variant of its enums occurs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

mod filler;

use std::fmt::Write as _;

use headcount_domain::queries::{Travels, WithQuery, with_query};
use headcount_storage::codec;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::filler::Filler;

const GOLDEN: &str = include_str!("golden.txt");
const ROUNDS: u64 = 5;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Fills a value, and returns its bytes, which read back as the same value.
fn filled<T: Serialize + DeserializeOwned>(round: u64) -> Vec<u8> {
    let value = T::deserialize(Filler::new(round)).unwrap();
    let bytes = codec::encode(1, &value).unwrap();
    let again: T = codec::decode(1, &bytes).unwrap();
    assert_eq!(codec::encode(1, &again).unwrap(), bytes);
    for length in 0..bytes.len() {
        assert!(codec::decode::<T>(1, &bytes[..length]).is_err(), "{length} of {bytes:?}");
    }
    assert!(codec::decode::<T>(1, &[&bytes[..], &[0]].concat()).is_err(), "trailing bytes");
    bytes
}

struct Lines;

impl WithQuery for Lines {
    type Output = String;

    fn with<Q: Travels>(self) -> String {
        let name = std::any::type_name::<Q>().rsplit("::").next().unwrap();
        let mut lines = String::new();
        for (kind, fill) in [("query", filled::<Q> as fn(u64) -> Vec<u8>), ("part", filled::<Q::Partial>)] {
            let mut of_kind: Vec<String> = (0..ROUNDS).map(|round| hex(&fill(round))).collect();
            of_kind.dedup();
            for bytes in of_kind {
                writeln!(lines, "{} {name} {kind} {bytes}", Q::TAG).unwrap();
            }
        }
        lines
    }
}

#[test]
fn the_bytes_of_what_travels_stay() {
    let lines: String = (0..=u16::MAX).filter_map(|tag| with_query(tag, Lines)).collect();
    let different = lines.lines().zip(GOLDEN.lines()).find(|(found, golden)| found != golden);
    assert_eq!(different, None, "these bytes changed, and need another tag");
    let missing = lines.strip_prefix(GOLDEN);
    assert_eq!(missing, Some(""), "golden.txt has other lines at its end");
}

/// Fields that change places are noticed.
#[test]
fn each_field_has_a_value_of_its_own() {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct One {
        a: u64,
        b: u64,
    }
    #[derive(serde::Serialize, serde::Deserialize)]
    #[serde(rename = "One")]
    struct Other {
        b: u64,
        a: u64,
    }
    assert_ne!(filled::<One>(0), filled::<Other>(0));
    assert_eq!(filled::<One>(0), filled::<One>(0));
    assert_ne!(filled::<One>(0), filled::<One>(1));
}
