//! Compares a paged list with a plain one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cache::paged::*;
use crate::fault::Fault;
use crate::limits::Limits;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Numbered(SortKey, u32);

impl Item for Numbered {
    type Page = Vec<Numbered>;
    type Digest = u32;
    const LIST: u32 = 1;
    const LISTS: u32 = 3;
    // Pages of four.
    const SIZE: usize = Limits::DEFAULT.page_items / 4;

    fn sort_key(&self) -> SortKey {
        self.0
    }

    fn to_page(items: &[Self]) -> Vec<Self> {
        items.to_vec()
    }

    fn of_page(page: Vec<Self>) -> Option<Vec<Self>> {
        Some(page)
    }

    fn digest(items: &[Self]) -> u32 {
        items.iter().map(|item| item.1).sum()
    }
}

type Store = BTreeMap<u32, Vec<Numbered>>;

fn save(list: &mut Paged<Numbered>, store: &mut Store) {
    list.dirty(&mut |serial, page| drop(store.insert(serial, page.clone())));
    list.saved();
    // The first pass only clears the marks of pages used since the last pass.
    list.shed();
    list.shed();
}

fn random(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move |limit| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % limit
    }
}

fn compare(list: &mut Paged<Numbered>, plain: &BTreeMap<SortKey, u32>, store: &Store, below: &mut impl FnMut(u64) -> u64) {
    let page = |serial: u32| store.get(&serial).cloned().ok_or_else(|| Fault::damaged_store("no such page"));
    let (first, length) = (SortKey::from(below(220)) - 10, SortKey::from(below(60)));
    list.load(first, first + length, page).unwrap();
    let items: Vec<(SortKey, u32)> = list.range(first, first + length).map(|item| (item.0, item.1)).collect();
    assert_eq!(items, plain.range(first..=first + length).map(|(number, value)| (*number, *value)).collect::<Vec<_>>());
    assert_eq!(list.after(first), plain.range(first + 1..).next().map(|(number, _)| *number));
    list.load_before(first, page).unwrap();
    assert_eq!(list.before(first), plain.range(..first).next_back().map(|(number, _)| *number));
    assert_eq!(list.get(first).map(|item| item.1), plain.get(&first).copied());
    assert_eq!(list.first(), plain.keys().next().copied());
    assert_eq!((list.len(), list.is_empty()), (plain.len(), plain.is_empty()));
}

#[test]
fn pages_hold_what_a_plain_list_does() {
    for seed in 1..25 {
        let mut below = random(seed);
        let (mut list, mut plain, mut store) = (Paged::<Numbered>::default(), BTreeMap::new(), Store::new());
        for step in 0..1_500 {
            let number = SortKey::from(if seed % 3 == 0 && step < 1_000 { step / 15 } else { below(200) });
            list.load(number, number, |serial| Ok(store[&serial].clone())).unwrap();
            if below(3) == 0 {
                assert_eq!(list.remove(number, &Limits::DEFAULT).map(|item| item.1), plain.remove(&number));
            } else if list.get(number).is_none() {
                list.insert(Numbered(number, step as u32), &Limits::DEFAULT);
                plain.insert(number, step as u32);
            }
            if below(50) == 0 {
                save(&mut list, &mut store);
                let mut loaded = 0;
                let count = |serial: u32| {
                    loaded += 1;
                    Ok(store[&serial].clone())
                };
                list.clone().load(SortKey::MIN, SortKey::MAX, count).unwrap();
                assert_eq!((loaded, list.has_pages()), (list.serials().count(), loaded > 0), "all pages were evicted");
            }
            compare(&mut list, &plain, &store, &mut below);
        }
    }
}

#[test]
fn neither_a_page_nor_the_list_of_pages_grows_without_bound() {
    for order in ["rising", "falling", "any"] {
        let mut list = Paged::<Numbered>::default();
        let items = 100_000;
        for at in 0..items {
            let number = match order {
                "rising" => at,
                "falling" => items - at,
                _ => (at * 68_787) % 100_003,
            };
            list.insert(Numbered(number, 0), &Limits::DEFAULT);
        }
        let (mut pages, mut most) = (0, 0);
        list.dirty(&mut |_, page| {
            pages += 1;
            most = most.max(page.len());
        });
        let recent = list.recent().len();
        assert!(recent <= 1_000 && most <= 1_000 && pages <= 1_000, "{order}: {recent} items, {most} in one of {pages} pages");
        assert!(list.iter().map(Item::sort_key).is_sorted(), "{order}");
        assert_eq!(list.len(), 100_000, "{order}");
    }
}

#[test]
fn places_are_found_whatever_the_spread() {
    let mut seed = 7_u64;
    let mut below = |most: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % most
    };
    for round in 0..2_000_u32 {
        // Even, uneven, and far apart; with equal ones.
        let scale = [1, 1 << 50, 1 << 100][round as usize % 3];
        let mut keys: Vec<SortKey> = (0..below(40)).map(|_| SortKey::from(below(60)).pow(1 + round % 2) * scale).collect();
        if round % 5 == 0 {
            keys.extend([SortKey::MIN, SortKey::MAX]);
        }
        keys.sort_unstable();
        for wanted in keys.iter().flat_map(|key| [key.saturating_sub(1), *key, key.saturating_add(1)]).chain([0, 1 << 70]) {
            let expected = keys.partition_point(|key| *key < wanted);
            assert_eq!(place_by_spread(&keys, wanted, |key| *key), expected, "{wanted} in {keys:?}");
        }
    }
}
