//! The events of the last minutes.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use headcount_domain::time::MAX_AHEAD_MS;
use headcount_domain::{EventSubject, Instant, RecordKey};

use super::feeds::LiveEvent;
use super::frame::{LiveMinute, LiveNotification};

const MINUTE_MS: i64 = 60_000;
/// The number of minutes shown, including the current one.
const MINUTES: i64 = 30;
/// How long a person counts as present.
const PRESENT_MS: i64 = 5 * MINUTE_MS;
/// How long ago an event of the shown minutes can have been received: its time may be ahead of its
/// receipt.
pub(crate) const RECENT_MS: i64 = MINUTES * MINUTE_MS + MAX_AHEAD_MS;
/// The maximum number of notifications kept.
const MAX_NOTIFICATIONS: usize = 100;
/// The maximum number of identities counted exactly over all minutes. Beyond it, every second one
/// is counted, and so on, and the counts are estimates, since senders decide how many there are.
const MAX_KEYS: usize = 1 << 16;

/// The events of the last minutes of a project.
#[derive(Debug, Default)]
pub(crate) struct RecentEvents {
    minutes: BTreeMap<i64, RecentMinute>,
    /// The time of the latest event of each identity.
    seen: HashMap<RecordKey, i64>,
    /// The number of keys in all minutes.
    keys: usize,
    /// The number of low bits that must be zero in a kept key.
    sampled_bits: u32,
    /// The last notifications, each with the time when it was added.
    notifications: VecDeque<(Instant, Arc<LiveNotification>)>,
}

#[derive(Debug, Default)]
struct RecentMinute {
    events: u64,
    users: HashSet<RecordKey>,
}

impl RecentEvents {
    /// Adds an event.
    pub(crate) fn add(&mut self, event: &LiveEvent, now: Instant) {
        if let EventSubject { identity: Some(user), linked: Some(anonymous) } = event.subject {
            // The anonymous id's events before it was linked.
            self.link(anonymous, user);
        }
        if let Some(notification) = &event.notification {
            self.notifications.push_back((now, Arc::clone(notification)));
            while self.notifications.len() > MAX_NOTIFICATIONS {
                self.notifications.pop_front();
            }
        }
        self.count(event.time.0, event.subject.identity, now);
    }

    fn count(&mut self, at_ms: i64, identity: Option<RecordKey>, now: Instant) {
        // The clock may have been set back, and events may be ahead of it.
        let minute = at_ms.div_euclid(MINUTE_MS);
        let running = now.0.div_euclid(MINUTE_MS);
        if minute <= running - MINUTES || minute > running + MINUTES {
            return;
        }
        let recent = self.minutes.entry(minute).or_default();
        recent.events += 1;
        let Some(key) = identity.filter(|key| is_sampled(*key, self.sampled_bits)) else { return };
        self.keys += usize::from(recent.users.insert(key));
        // A person whose clock is ahead is present now.
        let at_ms = at_ms.min(now.0);
        let seen = self.seen.entry(key).or_insert(at_ms);
        *seen = at_ms.max(*seen);
        while self.keys > MAX_KEYS && self.sampled_bits < u64::BITS - 1 {
            self.sampled_bits += 1;
            self.retain_sampled();
        }
    }

    fn retain_sampled(&mut self) {
        let bits = self.sampled_bits;
        self.minutes.values_mut().for_each(|minute| minute.users.retain(|key| is_sampled(*key, bits)));
        self.seen.retain(|key, _| is_sampled(*key, bits));
        self.keys = self.minutes.values().map(|minute| minute.users.len()).sum();
    }

    /// Moves the counts of `from` to `to`, because a link joined them.
    fn link(&mut self, from: RecordKey, to: RecordKey) {
        let Some(seen) = self.seen.remove(&from) else { return };
        let is_kept = is_sampled(to, self.sampled_bits);
        if is_kept {
            let of_user = self.seen.entry(to).or_insert(seen);
            *of_user = seen.max(*of_user);
        }
        for minute in self.minutes.values_mut() {
            if minute.users.remove(&from) && is_kept {
                minute.users.insert(to);
            }
        }
        self.keys = self.minutes.values().map(|minute| minute.users.len()).sum();
    }

    /// Forgets minutes that are no longer shown at `now`.
    pub(crate) fn forget_before(&mut self, now: Instant) {
        let first = now.0.div_euclid(MINUTE_MS) - MINUTES + 1;
        let before = self.minutes.len();
        self.minutes = self.minutes.split_off(&first);
        if self.minutes.len() < before {
            self.seen.retain(|_, at| *at >= first * MINUTE_MS);
            self.keys = self.minutes.values().map(|minute| minute.users.len()).sum();
        }
        if self.minutes.is_empty() {
            self.sampled_bits = 0;
        }
        while self.notifications.front().is_some_and(|(added, _)| added.0 < now.0 - RECENT_MS) {
            self.notifications.pop_front();
        }
    }

    /// Whether fewer identities are kept than fit: there were more, and they should be counted
    /// again.
    pub(crate) fn is_too_coarse(&self) -> bool {
        self.sampled_bits > 0 && self.estimate(self.keys) <= MAX_KEYS as u64 / 2
    }

    /// Returns the minutes up to `now`, ending with the current one.
    pub(crate) fn minutes(&self, now: Instant) -> Vec<LiveMinute> {
        let running = now.0.div_euclid(MINUTE_MS);
        let minute = |number: i64| {
            let recent = self.minutes.get(&number);
            LiveMinute {
                minute: Instant(number * MINUTE_MS),
                events: recent.map_or(0, |recent| recent.events),
                users: recent.map_or(0, |recent| self.estimate(recent.users.len())),
            }
        };
        (running - MINUTES + 1..=running).map(minute).collect()
    }

    /// Returns the number of identities with an event in the five minutes before `now`.
    pub(crate) fn present(&self, now: Instant) -> u64 {
        self.estimate(self.seen.values().filter(|at| **at > now.0 - PRESENT_MS && **at <= now.0).count())
    }

    /// Returns the last notifications, oldest first.
    pub(crate) fn notifications(&self) -> Arc<[Arc<LiveNotification>]> {
        self.notifications.iter().map(|(_, notification)| Arc::clone(notification)).collect()
    }

    fn estimate(&self, kept: usize) -> u64 {
        u64::try_from(kept).unwrap_or(u64::MAX).saturating_mul(1 << self.sampled_bits)
    }
}

fn is_sampled(RecordKey(hash): RecordKey, bits: u32) -> bool {
    hash.trailing_zeros() >= bits
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant(1_790_000_000_000);

    fn key(number: u128) -> RecordKey {
        // Spread over the low bits, as hashes are.
        RecordKey(number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835) >> 3)
    }

    fn counts(recent: &RecentEvents, minutes_ago: usize) -> (u64, u64) {
        let minutes = recent.minutes(NOW);
        assert_eq!(minutes.len(), 30);
        let minute = minutes[29 - minutes_ago];
        (minute.events, minute.users)
    }

    #[test]
    fn events_are_in_their_minutes_and_users_count_once() {
        let mut recent = RecentEvents::default();
        let add = |recent: &mut RecentEvents, ago_ms: i64, user: Option<u128>| recent.count(NOW.0 - ago_ms, user.map(key), NOW);
        add(&mut recent, 0, Some(1));
        add(&mut recent, 0, Some(1));
        add(&mut recent, 0, Some(2));
        add(&mut recent, 0, None);
        add(&mut recent, MINUTE_MS, Some(1));
        add(&mut recent, 6 * MINUTE_MS, Some(3));
        add(&mut recent, 31 * MINUTE_MS, Some(4));
        assert_eq!([0, 1, 2, 6].map(|ago| counts(&recent, ago)), [(4, 2), (1, 1), (0, 0), (1, 1)]);
        assert_eq!(recent.present(NOW), 2);
        recent.link(key(2), key(1));
        assert_eq!((counts(&recent, 0), recent.present(NOW)), ((4, 1), 1));
        recent.forget_before(NOW.plus_ms(29 * MINUTE_MS));
        assert_eq!((recent.minutes.len(), recent.seen.len(), recent.keys), (1, 1, 1));
        recent.forget_before(NOW.plus_ms(31 * MINUTE_MS));
        assert_eq!((recent.minutes.len(), recent.seen.len(), recent.keys), (0, 0, 0));
    }

    #[test]
    fn somebody_whose_clock_is_fast_is_present_now() {
        let mut recent = RecentEvents::default();
        recent.count(NOW.0, Some(key(1)), NOW);
        recent.count(NOW.0 + 4 * MINUTE_MS, Some(key(1)), NOW);
        recent.count(NOW.0 + 4 * MINUTE_MS, Some(key(2)), NOW);
        assert_eq!((recent.present(NOW), recent.present(NOW.plus_ms(6 * MINUTE_MS))), (2, 0));
    }

    #[test]
    fn many_identities_take_bounded_memory_and_are_estimated() {
        let mut recent = RecentEvents::default();
        for user in 0..1_000_000 {
            recent.count(NOW.0, Some(key(user)), NOW);
        }
        assert!(recent.keys <= MAX_KEYS && recent.seen.len() <= MAX_KEYS);
        let (events, users) = counts(&recent, 0);
        assert!(events == 1_000_000 && (950_000..1_050_000).contains(&users), "{users}");
        assert!(!recent.is_too_coarse());
        let later = NOW.plus_ms(20 * MINUTE_MS);
        (0..20).for_each(|user| recent.count(later.0, Some(key(user)), later));
        recent.forget_before(later);
        assert!(!recent.is_too_coarse(), "they are still shown");
        recent.forget_before(NOW.plus_ms(31 * MINUTE_MS));
        assert!(recent.is_too_coarse());
    }
}
