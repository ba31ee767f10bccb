//! Fair turns by measured work: a queue per tenant, served by deficit round robin (Shreedhar and
//! Varghese, 1995). The cost of an item is the time that it takes.
//!
//! Each tenant with queued items gets [`QUANTUM`] of time per round. An item can't be interrupted,
//! so a tenant may overrun its turn. It is then skipped until the debt is paid. So an item waits
//! for at most one quantum per other tenant, and once for the overrun of their single items.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::{Duration, Instant as Stopwatch};

/// Time that a tenant gets per round.
pub(crate) const QUANTUM: Duration = Duration::from_micros(500);
/// Time that one kind of work may take before the other kinds get their turn.
pub(super) const SLICE: Duration = QUANTUM;
/// Maximum number of events between two readings of the clock.
const LONGEST_STRIDE: usize = 64;
const QUANTUM_NS: i64 = QUANTUM.as_nanos() as i64;
/// Maximum debt of a tenant that is remembered.
const MOST_DEBT_NS: i64 = 64 * QUANTUM_NS;

struct Lane<T> {
    items: VecDeque<T>,
    /// The time left in this round.
    credit_ns: i64,
}

/// Queues of items, one per tenant, with fair turns.
pub(crate) struct FairQueue<K, T> {
    lanes: HashMap<K, Lane<T>>,
    /// The order of turns. Every lane is in it once.
    turns: VecDeque<K>,
    len: usize,
}

impl<K, T> Default for FairQueue<K, T> {
    fn default() -> Self {
        Self { lanes: HashMap::new(), turns: VecDeque::new(), len: 0 }
    }
}

impl<K: Copy + Eq + Hash, T> FairQueue<K, T> {
    /// Whether nothing is queued.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Queues an item behind those of the same tenant.
    pub(crate) fn push(&mut self, tenant: K, item: T) {
        self.lane(tenant).items.push_back(item);
        self.len += 1;
    }

    /// Queues an item before those of the same tenant.
    pub(crate) fn put_back(&mut self, tenant: K, item: T) {
        self.lane(tenant).items.push_front(item);
        self.len += 1;
    }

    fn lane(&mut self, tenant: K) -> &mut Lane<T> {
        let Self { lanes, turns, .. } = self;
        lanes.entry(tenant).or_insert_with(|| {
            turns.push_back(tenant);
            Lane { items: VecDeque::new(), credit_ns: QUANTUM_NS }
        })
    }

    /// Takes the next item. Report its cost with [`FairQueue::charge`].
    pub(crate) fn next(&mut self) -> Option<(K, T)> {
        if self.len == 0 {
            // No tenant waits for another, so debts are forgotten.
            self.lanes.clear();
            self.turns.clear();
            return None;
        }
        loop {
            let tenant = self.turns.pop_front()?;
            let Some(lane) = self.lanes.get_mut(&tenant) else { continue };
            if lane.credit_ns > 0
                && let Some(item) = lane.items.pop_front()
            {
                self.turns.push_front(tenant);
                self.len -= 1;
                return Some((tenant, item));
            }
            if lane.items.is_empty() && lane.credit_ns >= 0 {
                self.lanes.remove(&tenant);
                continue;
            }
            lane.credit_ns += QUANTUM_NS;
            self.turns.push_back(tenant);
        }
    }

    /// Takes the next item of a tenant out of turn.
    pub(crate) fn take(&mut self, tenant: K) -> Option<T> {
        let item = self.lanes.get_mut(&tenant)?.items.pop_front()?;
        self.len -= 1;
        Some(item)
    }

    /// Charges the cost of an item to its tenant.
    pub(crate) fn charge(&mut self, tenant: K, spent: Duration) {
        if let Some(lane) = self.lanes.get_mut(&tenant) {
            let spent_ns = i64::try_from(spent.as_nanos()).unwrap_or(MOST_DEBT_NS);
            lane.credit_ns = lane.credit_ns.saturating_sub(spent_ns).max(-MOST_DEBT_NS);
        }
    }

    /// The first item of each tenant.
    pub(crate) fn fronts(&self) -> impl Iterator<Item = (K, &T)> {
        self.lanes.iter().filter_map(|(tenant, lane)| Some((*tenant, lane.items.front()?)))
    }

    /// Removes all items of the `wanted` tenants. Each tenant's items keep their order.
    pub(crate) fn extract(&mut self, wanted: impl Fn(K) -> bool) -> Vec<T> {
        let mut taken = Vec::new();
        for (_, lane) in self.lanes.iter_mut().filter(|(tenant, _)| wanted(**tenant)) {
            taken.extend(lane.items.drain(..));
        }
        self.len -= taken.len();
        taken
    }
}

/// Reads the clock often if events are costly, and seldom if they are cheap.
pub(super) struct Pace {
    began: Stopwatch,
    looked: Stopwatch,
    stride: usize,
    left: usize,
}

impl Pace {
    pub(super) fn new(began: Stopwatch) -> Self {
        Self { began, looked: began, stride: 1, left: 1 }
    }

    /// Returns whether the slice is over. Call it after each event.
    pub(super) fn is_over(&mut self) -> bool {
        self.left -= 1;
        if self.left > 0 {
            return false;
        }
        let now = Stopwatch::now();
        let is_cheap = now - self.looked < SLICE / 8;
        self.stride = if is_cheap { (self.stride * 2).min(LONGEST_STRIDE) } else { 1 };
        (self.looked, self.left) = (now, self.stride);
        now - self.began >= SLICE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_tenant_of_costly_items_gets_no_more_time_than_another() {
        let mut fair = FairQueue::default();
        (0..1_000).for_each(|item| fair.push('a', item));
        (0..1_000).for_each(|item| fair.push('b', item));
        let mut spent = HashMap::from([('a', Duration::ZERO), ('b', Duration::ZERO)]);
        while let Some((tenant, _)) = fair.next() {
            // An item of `a` costs fifty times as much as one of `b`.
            let cost = if tenant == 'a' { 5 * MS } else { MS / 10 };
            fair.charge(tenant, cost);
            *spent.get_mut(&tenant).unwrap() += cost;
            if spent[&'b'] >= 50 * MS {
                break;
            }
        }
        assert!(spent[&'a'] <= 60 * MS, "{spent:?}");
    }

    #[test]
    fn items_of_a_tenant_keep_their_order_and_none_is_lost() {
        let mut fair = FairQueue::default();
        for item in 0..300 {
            fair.push(item % 7, item);
        }
        let mut seen: HashMap<i32, Vec<i32>> = HashMap::new();
        let mut again = true;
        while let Some((tenant, item)) = fair.next() {
            fair.charge(tenant, MS);
            if item == 150 && std::mem::take(&mut again) {
                fair.put_back(tenant, item);
                continue;
            }
            seen.entry(tenant).or_default().push(item);
        }
        assert_eq!(seen.values().map(Vec::len).sum::<usize>(), 300);
        assert!(seen.values().all(|items| items.is_sorted()));
        assert!(fair.is_empty() && fair.lanes.is_empty() && fair.turns.is_empty());
    }

    #[test]
    fn a_debt_outlives_an_empty_queue_while_others_wait() {
        let mut fair = FairQueue::default();
        (0..1_000).for_each(|item| fair.push('b', item));
        fair.push('a', 0);
        let mut of_b = 0;
        let mut of_a = 0;
        while of_a < 10 {
            let (tenant, _) = fair.next().unwrap();
            match tenant {
                'a' => {
                    of_a += 1;
                    fair.charge('a', 10 * MS);
                    // It sends the next item when it has its answer.
                    fair.push('a', 0);
                }
                _ => {
                    of_b += 1;
                    fair.charge('b', MS);
                    fair.push('b', 0);
                }
            }
        }
        assert!(of_b >= 80, "{of_b} of 1 ms each beside {of_a} of 10 ms each");
    }

    #[test]
    fn all_of_some_tenants_can_be_taken_out() {
        let mut fair = FairQueue::default();
        (0..10).for_each(|item| fair.push(item % 3, item));
        assert_eq!(fair.fronts().map(|(_, item)| *item).sum::<i32>(), 3);
        assert_eq!(fair.extract(|tenant| tenant == 1), [1, 4, 7]);
        let mut rest: Vec<i32> = std::iter::from_fn(|| fair.next().map(|(_, item)| item)).collect();
        rest.sort_unstable();
        assert_eq!(rest, [0, 2, 3, 5, 6, 8, 9]);
    }
}
