//! Verifies that the server's counts agree with its acknowledgements.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};

use super::client::Client;
use super::failure::Failure;
use super::ledger::{Acknowledged, Ledger};
use super::spread::Destination;

/// The number of projects that are read in parallel.
const THREADS: usize = 4;
/// The maximum number of differing projects that the report names.
const MAX_NAMED: usize = 10;

/// The counts of a project at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    events: i64,
    duplicates: i64,
    orders: i64,
    users: i64,
}

#[derive(Deserialize)]
struct Metrics {
    orders: i64,
}

#[derive(Deserialize)]
struct UniqueUsers {
    total_unique_users: i64,
}

#[derive(Deserialize)]
struct Arrived {
    recorded: i64,
    duplicates: i64,
}

/// The acknowledged and counted events of all projects, including the warm-up.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Verified {
    /// Events acknowledged as recorded.
    pub(crate) events_sent: i64,
    /// Events by which the server's count rose.
    pub(crate) events_counted: i64,
    /// Events acknowledged as duplicates.
    pub(crate) duplicates_sent: i64,
    /// Duplicates by which the server's count rose.
    pub(crate) duplicates_counted: i64,
    /// Orders in acknowledged requests.
    pub(crate) orders_sent: i64,
    /// Orders by which the server's count rose.
    pub(crate) orders_counted: i64,
    /// Users in acknowledged requests.
    pub(crate) users_sent: i64,
    /// Users by which the server's count rose.
    pub(crate) users_counted: i64,
    /// The number of projects that were compared separately.
    pub(crate) projects: usize,
    /// The first projects with differing counts.
    pub(crate) differing: Vec<String>,
    /// Whether all counts match. Requests without a response may or may not count.
    pub(crate) agrees: bool,
}

/// Reads the counts of all projects from the server.
pub(crate) fn counts(url: &str, destinations: &[Destination]) -> Result<Vec<Counts>, Failure> {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get).min(THREADS).min(destinations.len());
    let work = || -> Result<Vec<(usize, Counts)>, Failure> {
        let mut mine = Vec::new();
        let mut client: Option<(&str, Client)> = None;
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(Destination { project, token, .. }) = destinations.get(at) else { return Ok(mine) };
            let known = client.take().filter(|(of, _)| of == token);
            let (_, client) = client.insert(match known {
                Some(known) => known,
                None => (token, Client::new(url, token)),
            });
            if let Some(project) = project {
                mine.push((at, counts_of(client, project)?));
            }
        }
    };
    let mut all = vec![Counts::default(); destinations.len()];
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
        for handle in handles {
            for (at, counts) in handle.join().map_err(|_| Failure("a thread that reads counts failed".into()))?? {
                if let Some(place) = all.get_mut(at) {
                    *place = counts;
                }
            }
        }
        Ok(all)
    })
}

fn counts_of(client: &Client, project: &str) -> Result<Counts, Failure> {
    let Metrics { orders } = client.get(&format!("/projects/{project}/revenue/metrics"))?;
    let path = format!("/projects/{project}/analytics/count-unique-users-per-day");
    let UniqueUsers { total_unique_users: users } = client.post(&path, "{}")?;
    let Arrived { recorded, duplicates } = client.get(&format!("/projects/{project}/intake"))?;
    Ok(Counts { events: recorded, duplicates, orders, users })
}

/// Compares the increase of each project's counts with the acknowledged events.
pub(crate) fn compare(before: &[Counts], after: &[Counts], ledger: &Ledger, destinations: &[Destination]) -> Verified {
    let mut verified = Verified { agrees: true, projects: destinations.len(), ..Verified::default() };
    for (at, ((before, after), destination)) in before.iter().zip(after).zip(destinations).enumerate() {
        let (sent, is_uncertain) = ledger.of(at);
        if !verified.add(*before, *after, sent, is_uncertain) {
            verified.agrees = false;
            if verified.differing.len() < MAX_NAMED {
                verified.differing.push(destination.project.clone().unwrap_or_default());
            }
        }
    }
    verified
}

impl Verified {
    /// Adds a project, and returns whether its counts match.
    fn add(&mut self, before: Counts, after: Counts, sent: Acknowledged, is_uncertain: bool) -> bool {
        let same = |all_sent: &mut i64, all_counted: &mut i64, sent: u64, counted: i64| {
            let sent = i64::try_from(sent).unwrap_or(i64::MAX);
            *all_sent += sent;
            *all_counted += counted;
            sent == counted || (is_uncertain && counted > sent)
        };
        let events = same(&mut self.events_sent, &mut self.events_counted, sent.events, after.events - before.events);
        let repeated = after.duplicates - before.duplicates;
        let duplicates = same(&mut self.duplicates_sent, &mut self.duplicates_counted, sent.duplicates, repeated);
        let orders = same(&mut self.orders_sent, &mut self.orders_counted, sent.orders, after.orders - before.orders);
        let users = same(&mut self.users_sent, &mut self.users_counted, sent.users, after.users - before.users);
        events && duplicates && orders && users
    }

    /// Formats the result as text.
    pub(crate) fn describe(&self) -> String {
        let verdict = if self.agrees { "as sent" } else { "NOT AS SENT" };
        let mut text = format!(
            "counted  {verdict}: {} of {} events, {} of {} orders, {} of {} users",
            self.events_counted, self.events_sent, self.orders_counted, self.orders_sent, self.users_counted, self.users_sent
        );
        if self.duplicates_sent + self.duplicates_counted > 0 {
            text.push_str(&format!(", {} of {} duplicates", self.duplicates_counted, self.duplicates_sent));
        }
        if self.projects > 1 {
            text.push_str(&format!(", in {} projects", self.projects));
        }
        if !self.differing.is_empty() {
            text.push_str(&format!("; different in {}", self.differing.join(", ")));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::EventWriter;
    use crate::spread::Spread;

    #[test]
    fn each_project_is_compared_by_itself() {
        let events = EventWriter::new("run", false);
        let ledger = Ledger::new(2, Spread::new(2, 1_000, 0));
        ledger.recorded(0, 0..32, &events);
        ledger.recorded(1, 0..16, &events);
        let destination = |id| Destination { project: Some(format!("prj_{id}")), key: String::new(), token: String::new() };
        let destinations = [destination(1), destination(2)];
        let before = [Counts { events: 5, duplicates: 1, orders: 2, users: 3 }, Counts::default()];
        let risen = |events: i64, orders, users| Counts { events, duplicates: 0, orders, users };
        let of = |before: Counts, risen: Counts| Counts {
            events: before.events + risen.events,
            duplicates: before.duplicates + risen.duplicates,
            orders: before.orders + risen.orders,
            users: before.users + risen.users,
        };
        let after = [of(before[0], risen(32, 2, 32)), risen(16, 1, 16)];
        let verified = compare(&before, &after, &ledger, &destinations);
        assert!(verified.agrees && verified.differing.is_empty(), "{verified:?}");
        assert_eq!((verified.events_sent, verified.events_counted, verified.users_counted), (48, 48, 48));
        // The sums are the same, and yet two projects differ.
        let moved = [of(before[0], risen(31, 2, 32)), risen(17, 1, 16)];
        let verified = compare(&before, &moved, &ledger, &destinations);
        assert_eq!((verified.agrees, verified.differing.len()), (false, 2), "{verified:?}");
        // Uncertain requests may add to the counts, never subtract.
        ledger.uncertain(0);
        ledger.uncertain(1);
        assert_eq!(compare(&before, &moved, &ledger, &destinations).differing.len(), 1);
        // Each count counts.
        for wrong in [risen(16, 0, 16), risen(16, 1, 15), Counts { duplicates: -1, ..risen(16, 1, 16) }] {
            assert!(!compare(&before, &[after[0], wrong], &ledger, &destinations).agrees, "{wrong:?}");
        }
    }
}
