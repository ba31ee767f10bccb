//! Erasures that were given up before they began.
//!
//! Each attempt has left records in the control log, which a cluster never trims. So after a second
//! attempt the next one waits, because senders of events may link ids faster than an erasure finds
//! them, and the client repeats the request.

use std::collections::HashMap;
use std::time::{Duration, Instant as Stopwatch};

use headcount_domain::{OrganizationId, RecordKey};
use parking_lot::Mutex;

/// How long an attempt counts.
const COUNTED: Duration = Duration::from_secs(3_600);
/// The number of attempts of an organization in that time after which each further one waits.
const MANY: usize = 32;
const PAUSE_AFTER_MANY: Duration = Duration::from_secs(30);
/// The pause after the second attempt about a subject. It doubles each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// The erasures of each organization that were given up.
#[derive(Debug, Default)]
pub(crate) struct GivenUpErasures {
    /// The recent attempts, oldest first, each with the key of its subject.
    organizations: Mutex<HashMap<OrganizationId, Vec<(RecordKey, Stopwatch)>>>,
}

impl GivenUpErasures {
    /// Records that an attempt was given up.
    pub(crate) fn note(&self, organization: OrganizationId, subject: RecordKey) {
        self.note_at(organization, subject, Stopwatch::now());
    }

    fn note_at(&self, organization: OrganizationId, subject: RecordKey, now: Stopwatch) {
        let mut organizations = self.organizations.lock();
        organizations.retain(|_, given_up| {
            given_up.retain(|(_, at)| now.saturating_duration_since(*at) < COUNTED);
            !given_up.is_empty()
        });
        organizations.entry(organization).or_default().push((subject, now));
    }

    /// Whether another attempt is allowed now.
    pub(crate) fn allow(&self, organization: OrganizationId, subject: RecordKey) -> bool {
        self.allow_at(organization, subject, Stopwatch::now())
    }

    fn allow_at(&self, organization: OrganizationId, subject: RecordKey, now: Stopwatch) -> bool {
        let organizations = self.organizations.lock();
        let Some(given_up) = organizations.get(&organization) else { return true };
        let ages = given_up.iter().map(|(of, at)| (*of, now.saturating_duration_since(*at)));
        let ages: Vec<_> = ages.filter(|(_, age)| *age < COUNTED).collect();
        let last = ages.iter().map(|(_, age)| *age).min().unwrap_or(Duration::MAX);
        let (mut count, mut youngest) = (0_u32, Duration::MAX);
        for (_, age) in ages.iter().filter(|(of, _)| *of == subject) {
            (count, youngest) = (count + 1, youngest.min(*age));
        }
        let pause = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(count.saturating_sub(2))).min(LONGEST_PAUSE);
        (ages.len() < MANY || last >= PAUSE_AFTER_MANY) && (count <= 1 || youngest >= pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: OrganizationId = OrganizationId(1);
    const B: OrganizationId = OrganizationId(2);

    /// The number of attempts about each of `subjects` in `time`, if each is repeated after `pause`
    /// seconds.
    fn attempts(given_up: &GivenUpErasures, subjects: u128, began: Stopwatch, (time, pause): (Duration, usize)) -> usize {
        let mut attempts = 0;
        for second in (0..time.as_secs()).step_by(pause) {
            let now = began + Duration::from_secs(second);
            for subject in (0..subjects).map(RecordKey) {
                if given_up.allow_at(A, subject, now) {
                    given_up.note_at(A, subject, now);
                    attempts += 1;
                }
            }
        }
        attempts
    }

    #[test]
    fn attempts_that_are_given_up_become_rare() {
        let (given_up, began) = (GivenUpErasures::default(), Stopwatch::now());
        let one = attempts(&given_up, 1, began, (COUNTED, 1));
        assert!((8..=20).contains(&one), "{one}");
        assert!(!given_up.allow_at(A, RecordKey(0), began + COUNTED));
        assert!(given_up.allow_at(A, RecordKey(1), began + COUNTED) && given_up.allow_at(B, RecordKey(0), began + COUNTED));
        let later = began + 3 * COUNTED;
        assert!(given_up.allow_at(A, RecordKey(0), later));
        // The number of subjects does not matter.
        let many = attempts(&given_up, 500, later, (3 * COUNTED, 10));
        assert!((MANY..=MANY + 3 * 120).contains(&many), "{many}");
        // No subject has to wait for long.
        let soon = later + 3 * COUNTED + PAUSE_AFTER_MANY;
        assert!(given_up.allow_at(A, RecordKey(1_000), soon));
        given_up.note_at(B, RecordKey(0), later + 5 * COUNTED);
        assert_eq!(given_up.organizations.lock().keys().copied().collect::<Vec<_>>(), [B], "nothing is kept for longer");
    }
}
