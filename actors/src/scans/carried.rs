//! What events carry through a sort: a code for what others carry too.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;

/// Memory of an entry besides its bytes, roughly.
const OVERHEAD: usize = 96;
/// How many more events may carry something unknown than something known, before nothing is looked
/// up any more.
const PATIENCE: u64 = 1 << 16;
/// Comes before what an event carries itself.
const ITSELF: u8 = 0;
/// Comes before a code.
const CODED: u8 = 1;
/// The bytes of a code. What has no more is not worth one.
const CODE: usize = size_of::<u32>();

/// Gives codes to what events carry, up to a number of bytes.
pub(super) struct CarriedCodes {
    codes: HashMap<Box<[u8]>, u32, RandomState>,
    values: Vec<Box<[u8]>>,
    bytes: usize,
    /// Maximum number of bytes in memory.
    most: usize,
    known: u64,
    unknown: u64,
}

impl CarriedCodes {
    /// Keeps at most `most` bytes.
    pub(super) fn new(most: usize) -> Self {
        Self { codes: HashMap::default(), values: Vec::new(), bytes: 0, most, known: 0, unknown: 0 }
    }

    fn code_of(&mut self, carried: &[u8]) -> Option<u32> {
        if carried.len() <= CODE || self.unknown > self.known + PATIENCE {
            return None;
        }
        if let Some(code) = self.codes.get(carried) {
            self.known += 1;
            return Some(*code);
        }
        self.unknown += 1;
        let bytes = 2 * carried.len() + OVERHEAD;
        if self.bytes + bytes > self.most {
            return None;
        }
        let code = u32::try_from(self.values.len()).ok()?;
        self.bytes += bytes;
        self.codes.insert(carried.into(), code);
        self.values.push(carried.into());
        Some(code)
    }

    /// Passes what stands for `carried` to `push`, in two parts.
    pub(super) fn encode<R>(&mut self, carried: &[u8], push: impl FnOnce(&[u8], &[u8]) -> R) -> R {
        match self.code_of(carried) {
            Some(code) => push(&[CODED], &code.to_le_bytes()),
            None => push(&[ITSELF], carried),
        }
    }

    /// Returns what an encoded event carries.
    pub(super) fn decode<'c>(&'c self, encoded: &'c [u8]) -> &'c [u8] {
        match encoded.split_first() {
            Some((&CODED, code)) => {
                let code = code.try_into().map_or(u32::MAX, u32::from_le_bytes);
                self.values.get(code as usize).map_or(&[], |value| value)
            }
            Some((_, carried)) => carried,
            None => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_carried_comes_back_and_repetitions_are_short() {
        let mut codes = CarriedCodes::new(4_096);
        let carried: Vec<Vec<u8>> = (0..60_000_usize)
            .map(|number| match number % 3 {
                0 => Vec::new(),
                1 => vec![7; number % 60],
                // Most find no room.
                _ => format!("https://shop.example/{}", number * 7_919 % 400).into_bytes(),
            })
            .collect();
        let encoded: Vec<Vec<u8>> = carried.iter().map(|one| codes.encode(one, |tag, rest| [tag, rest].concat())).collect();
        assert!(carried.iter().zip(&encoded).all(|(carried, encoded)| codes.decode(encoded) == carried));
        assert!(encoded.iter().filter(|one| one.first() == Some(&CODED)).count() > 1_000);
        assert!(codes.bytes <= 4_096 && codes.values.len() > 10);
    }

    #[test]
    fn nothing_is_looked_up_where_nothing_repeats() {
        let mut codes = CarriedCodes::new(4_096);
        for number in 0..PATIENCE + 1_000 {
            codes.encode(format!("position {number}").as_bytes(), |_, _| ());
        }
        assert_eq!(codes.unknown, PATIENCE + 1);
        assert_eq!(codes.encode(b"position 1", |tag, _| tag[0]), ITSELF);
        let kept = codes.values.len();
        assert!((10..100).contains(&kept), "{kept}");
    }
}
