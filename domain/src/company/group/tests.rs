//! Compares a group with a plain list of its members' activity.

use std::collections::{BTreeMap, BTreeSet};

use crate::company::group::*;
use crate::facts::SeenOnDay;
use crate::fault::Fault;
use crate::ids::RecordKey;
use crate::limits::Limits;
use crate::records::{NoSource, Record as _};
use crate::time::{Day, Instant, MS_PER_DAY, Window};

type Days = BTreeMap<(RecordKey, i32), (u32, Instant, Instant)>;

fn unsaved(_: u32) -> Result<GroupPage, Fault> {
    use crate::records::Source as _;
    NoSource.page::<Group>(RecordKey(0))
}

fn at(day: i32, second: u32) -> Instant {
    Instant(i64::from(day) * MS_PER_DAY + i64::from(second) * 1000)
}

fn compare(group: &mut Group, days: &Days, window: Window) {
    let inside = || days.iter().filter(|((_, day), _)| window.contains(Day(*day)));
    let expected: BTreeSet<RecordKey> = inside().map(|((member, _), _)| *member).collect();
    let mut members = Vec::new();
    group.members(window, &mut members, unsaved).unwrap();
    assert!(members.is_sorted());
    assert_eq!(members.iter().copied().collect::<BTreeSet<_>>(), expected, "{window:?}");
    assert_eq!(members.len(), expected.len(), "each once");
    if let Some(count) = group.count_members(window) {
        assert_eq!(count, expected.len() as u64, "{window:?}");
    }
    let visits: u32 = group.visits(window, unsaved).unwrap().map(|(_, did)| did.events).sum();
    assert_eq!(visits, inside().map(|(_, (events, ..))| events).sum::<u32>(), "{window:?}");
}

fn seen(days: &Days) -> Option<(Instant, Instant)> {
    days.values().map(|(_, first, last)| (*first, *last)).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}

#[test]
fn members_are_those_of_the_days() {
    let mut random = 88_172_645_463_325_252_u64;
    let mut below = |limit: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % limit
    };
    for round in 0..60 {
        let (mut group, mut days) = (Group::new("team", "a", 0), Days::new());
        for step in 0..200 {
            // Spread the keys over all first digits.
            let member = RecordKey(u128::from(below(20)).wrapping_mul(u128::MAX / 23));
            let day = i32::try_from(below(40)).unwrap() - 20;
            if below(3) > 0 || round % 2 == 0 {
                let time = at(day, u32::try_from(below(80_000)).unwrap());
                let did = MemberDay { events: 1, seen: SeenOnDay::once(Day(day), time) };
                group.add_member(Day(day), member, did, &Limits::DEFAULT, unsaved).unwrap();
                let held = days.entry((member, day)).or_insert((0, time, time));
                *held = (held.0 + 1, held.1.min(time), held.2.max(time));
            } else {
                group.remove_member(Day(day), member, &Limits::DEFAULT, unsaved).unwrap();
                days.remove(&(member, day));
            }
            if step % 10 == 0 {
                let saved = serde_json::to_string(&group).unwrap();
                assert_eq!(group.seen(unsaved).unwrap(), seen(&days));
                assert_eq!(serde_json::to_string(&group).unwrap(), saved, "a question changes nothing that is saved");
                let start = i32::try_from(below(50)).unwrap() - 25;
                let end = start + i32::try_from(below(30)).unwrap();
                compare(&mut group, &days, Window { start: Day(start), end: Day(end) });
                compare(&mut group, &days, Window { start: Day(start), end: Day(99) });
            }
        }
    }
}

#[test]
fn a_day_of_many_members_is_in_many_pages() {
    let mut group = Group::new("company", "a", 0);
    let members = 20_000;
    let ms = |member: u32| at(7, member % 80_000);
    for member in 0..members {
        let key = RecordKey(u128::from(member).wrapping_mul(u128::MAX / 20_001));
        let did = MemberDay { events: 1, seen: SeenOnDay::once(Day(7), ms(member)) };
        group.add_member(Day(7), key, did, &Limits::DEFAULT, unsaved).unwrap();
    }
    let mut pages = 0;
    group.dirty_pages(RecordKey(1), &mut |_, page| {
        pages += 1;
        assert!(page.len() <= 2 * Limits::DEFAULT.page_items, "{}", page.len());
    });
    assert!(pages > 2 * 20_000 / (2 * Limits::DEFAULT.page_items), "{pages}");
    assert!(group.visits.recent().len() + group.roster.recent().len() <= 4 * Limits::DEFAULT.page_items);
    assert_eq!(group.count_members(Window { start: Day(7), end: Day(7) }), Some(u64::from(members)));
}
