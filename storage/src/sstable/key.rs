//! Comparing keys by their first 8 bytes, which decide most comparisons, as one number.

use std::cmp::Ordering;

/// The first 8 bytes of a key as a number, in the order of the keys.
pub(super) fn head_of(key: &[u8]) -> u64 {
    if let Some(head) = key.first_chunk() {
        return u64::from_be_bytes(*head);
    }
    let mut head = [0; 8];
    head[..key.len()].copy_from_slice(key);
    u64::from_be_bytes(head)
}

/// Compares two keys, as `Ord` does.
pub(super) fn compare_keys(one: &[u8], other: &[u8]) -> Ordering {
    match (one.first_chunk(), other.first_chunk()) {
        (Some(head), Some(other_head)) if head != other_head => u64::from_be_bytes(*head).cmp(&u64::from_be_bytes(*other_head)),
        _ => one.cmp(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_all_lengths_compare_as_slices() {
        let keys: Vec<Vec<u8>> =
            (0..20_usize).flat_map(|len| [0, 1, 255].map(|last| [vec![1; len], vec![last]].concat())).collect();
        for one in &keys {
            for other in &keys {
                assert_eq!(compare_keys(one, other), one.cmp(other), "{one:?} {other:?}");
                assert!(one > other || head_of(one) <= head_of(other), "{one:?} {other:?}");
            }
        }
    }
}
