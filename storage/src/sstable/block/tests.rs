use super::Encoding::{Numbers, Prefix};
use super::*;
use crate::sstable::error::TableError;

type Pairs = Vec<(Vec<u8>, Option<Vec<u8>>)>;

fn read(bytes: &[u8]) -> Result<Pairs, TableError> {
    let mut cursor = BlockCursor::new(Prefix);
    cursor.load(bytes)?;
    let mut pairs = Vec::new();
    while cursor.advance()? {
        pairs.push((cursor.key().to_vec(), cursor.value().map(<[u8]>::to_vec)));
    }
    Ok(pairs)
}

fn block_of(pairs: &Pairs) -> Vec<u8> {
    let mut block = BlockBuilder::new(Prefix);
    for (key, value) in pairs {
        block.push(key, value.as_deref()).unwrap();
    }
    block.encode().unwrap().into_owned()
}

#[test]
fn pairs_come_back_and_cut_blocks_are_noticed() {
    let pairs: Pairs = (0..300_u32)
        .map(|number| {
            let value = vec![number as u8; number as usize];
            ([number.to_be_bytes().as_slice(), &vec![0; number as usize % 3]].concat(), (number % 5 != 0).then_some(value))
        })
        .collect();
    let bytes = &block_of(&pairs);
    assert_eq!(read(bytes).unwrap(), pairs);
    let ends: Vec<usize> = (1..bytes.len()).filter(|end| read(&bytes[..*end]).is_ok()).collect();
    assert!(ends.len() < pairs.len(), "only a cut between two pairs can pass: {}", ends.len());
    assert!(read(&[0xff; 40]).is_err() && find(Prefix, &[0xff; 40], b"key").is_err());
}

#[test]
fn a_block_finds_the_keys_that_it_has_and_no_others() {
    // All words of up to four letters. Every third is in the block.
    let mut words: Vec<Vec<u8>> = vec![Vec::new()];
    for len in 0..4 {
        let longer: Vec<_> = words.iter().filter(|word| word.len() == len).cloned().collect();
        words.extend(longer.iter().flat_map(|word| [b'a', b'b', b'c'].map(|letter| [word.as_slice(), &[letter]].concat())));
    }
    words.sort();
    for offset in 0..3 {
        let pairs: Pairs = (0..)
            .zip(&words)
            .filter(|(at, _)| at % 3 == offset)
            .map(|(at, word)| (word.clone(), (at % 2 == 0).then(|| word.repeat(2))))
            .collect();
        let bytes = &block_of(&pairs);
        for word in &words {
            let expected = pairs.iter().find(|(key, _)| key == word).map(|(_, value)| value.as_deref());
            assert_eq!(find(Prefix, bytes, word).unwrap(), expected, "{word:?}");
        }
    }
}

#[test]
fn numbers_come_back_and_damaged_blocks_are_noticed() {
    for (keys, largest) in [(1_u64, 0_u64), (2, 255), (300, 70_000), (300, u64::MAX)] {
        let pairs: Vec<([u8; 16], u64)> =
            (0..keys).map(|number| ((u128::from(number) << 64 | 7 << 120).to_be_bytes(), largest.wrapping_sub(number))).collect();
        let mut block = BlockBuilder::new(Numbers);
        for (at, (key, number)) in pairs.iter().enumerate() {
            let bytes = number.to_be_bytes();
            block.push(key, Some(&bytes[if at == 0 { number.leading_zeros() as usize / 8 } else { 0 }..])).unwrap();
        }
        let bytes = block.encode().unwrap().into_owned();
        let decoded = |value: &[u8]| value.iter().fold(0, |number, byte| (number << 8) | u64::from(*byte));
        let mut cursor = BlockCursor::new(Numbers);
        cursor.load(&bytes).unwrap();
        for (key, number) in &pairs {
            assert!(cursor.advance().unwrap());
            assert_eq!((cursor.key(), decoded(cursor.value().unwrap())), (key.as_slice(), *number));
            assert_eq!(find(Numbers, &bytes, key).unwrap().unwrap().map(decoded), Some(*number));
        }
        assert!(!cursor.advance().unwrap());
        cursor.load(&bytes).unwrap();
        assert!(cursor.advance().unwrap());
        assert_eq!(cursor.skip_to_last().unwrap(), keys - 1);
        assert_eq!(cursor.key(), pairs[pairs.len() - 1].0.as_slice());
        if let [.., last_but_one, last] = pairs.as_slice() {
            // Nothing but the order of the last two keys changes.
            let mut swapped = BlockBuilder::new(Numbers);
            for (key, number) in pairs[..pairs.len() - 2].iter().chain([last, last_but_one]) {
                swapped.push(key, Some(&number.to_be_bytes())).unwrap();
            }
            cursor.load(&swapped.encode().unwrap()).unwrap();
            assert!(cursor.advance().unwrap() && cursor.skip_to_last().is_err());
        }
        for strange in [[0; 16].as_slice(), &[0xff; 16], &pairs[0].0[..15], &[], &(7_u128 << 120 | 1).to_be_bytes()] {
            assert_eq!(find(Numbers, &bytes, strange).unwrap(), None);
        }
        for cut in [0, 2, 3, bytes.len() - 1] {
            let cut = bytes[..cut].to_vec();
            assert!(find(Numbers, &cut, &pairs[0].0).is_err() && cursor.load(&cut).is_err());
        }
    }
    assert!(BlockBuilder::new(Numbers).push(&[1; 16], None).is_err());
    assert!(BlockBuilder::new(Numbers).push(&[1; 16], Some(&[1; 9])).is_err());
}
