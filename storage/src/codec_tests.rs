use super::*;
use serde::Deserialize;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Sample {
    id: u64,
    amount: Option<i64>,
    name: String,
    tags: Vec<(u8, bool)>,
}

fn sample() -> Sample {
    Sample { id: 1 << 40, amount: Some(-7), name: "zoë".into(), tags: vec![(1, true), (250, false)] }
}

#[test]
fn a_value_comes_back() {
    let bytes = encode(3, &sample()).unwrap();
    assert_eq!(decode::<Sample>(3, &bytes).unwrap(), sample());
}

#[test]
fn the_bytes_are_those_of_the_fixture() {
    let fixture = include_bytes!("../fixtures/codec-1.bin");
    assert_eq!(encode(1, &sample()).unwrap(), fixture);
    assert_eq!(decode::<Sample>(1, fixture).unwrap(), sample());
}

#[test]
fn an_older_version_is_read_through_its_own_reader() {
    let read = |bytes: &[u8]| decode_any::<u64>(bytes, &[(1, |old| payload::<u32>(old).map(u64::from)), (2, payload)]);
    assert_eq!(read(&encode(1, &5_u32).unwrap()).unwrap(), 5);
    assert_eq!(read(&encode(2, &6_u64).unwrap()).unwrap(), 6);
    let unknown = read(&encode(9, &6_u64).unwrap()).unwrap_err();
    assert!(matches!(unknown, CodecError::UnknownVersion { found: 9, ref understood } if understood == &[1, 2]));
}

#[test]
fn what_is_not_the_value_is_refused() {
    let bytes = encode(1, &sample()).unwrap();
    assert!(matches!(decode::<Sample>(1, &[]), Err(CodecError::Empty)));
    for end in 1..bytes.len() {
        assert!(matches!(decode::<Sample>(1, &bytes[..end]), Err(CodecError::Truncated)), "cut at {end}");
    }
    let mut longer = bytes.clone();
    longer.extend([0, 0]);
    assert!(matches!(decode::<Sample>(1, &longer), Err(CodecError::TrailingBytes { count: 2 })));
    assert!(matches!(decode::<bool>(1, &[1, 7]), Err(CodecError::Malformed(_))));
}

#[test]
fn a_length_that_lies_takes_no_memory() {
    let claim = [1, 253, 255, 255, 255, 255, 255, 255, 255, 0];
    assert!(decode::<Vec<u64>>(1, &claim).is_err());
    assert!(decode::<String>(1, &claim).is_err());
}

#[test]
fn a_value_that_is_too_large_is_refused_and_leaves_no_trace() {
    let mut bytes = vec![42];
    let outcome = encode_into(1, &vec![1_u8; MAX_ENCODED_BYTES], &mut bytes);
    assert!(matches!(outcome, Err(CodecError::TooLarge)));
    assert_eq!(bytes, [42]);
}
