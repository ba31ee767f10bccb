//! A fault that keeps a node from serving partitions. It must last for some time, so that a brief
//! fault moves no partition.

use std::time::Duration;

use tokio::time::Instant;

/// A fault that keeps a node from serving, and its duration.
#[derive(Debug)]
pub(super) struct Ailment {
    /// How long a fault must last to count.
    after: Duration,
    /// How long there must be no fault before the node may serve again.
    calm: Duration,
    /// The time since when there is a fault.
    wrong_since: Option<Instant>,
    /// The time since when there is no fault.
    well_since: Option<Instant>,
    reason: Option<String>,
}

impl Ailment {
    pub(super) fn new(after: Duration, calm: Duration) -> Self {
        Self { after, calm, wrong_since: None, well_since: None, reason: None }
    }

    /// Records the current fault, if any. Returns the reason why the node must not serve
    /// partitions, if there is one.
    pub(super) fn note(&mut self, wrong: Option<&str>) -> Option<&str> {
        let now = Instant::now();
        match wrong {
            Some(wrong) => {
                self.well_since = None;
                let since = *self.wrong_since.get_or_insert(now);
                if self.reason.is_some() || now - since >= self.after {
                    self.reason = Some(wrong.to_owned());
                }
            }
            None => {
                self.wrong_since = None;
                let since = *self.well_since.get_or_insert(now);
                if now - since >= self.calm {
                    self.reason = None;
                }
            }
        }
        self.reason.as_deref()
    }

    /// Forgets the start of a fault, because it may have been interrupted.
    pub(super) fn interrupt(&mut self) {
        self.wrong_since = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AFTER: Duration = Duration::from_millis(300);
    const CALM: Duration = Duration::from_millis(600);

    #[test]
    fn it_begins_and_ends_late() {
        let mut ailment = Ailment::new(AFTER, CALM);
        assert_eq!(ailment.note(Some("a")), None, "a moment's trouble");
        assert_eq!(ailment.note(None), None);
        ailment.note(Some("a"));
        std::thread::sleep(AFTER);
        ailment.interrupt();
        assert_eq!(ailment.note(Some("a")), None, "it may have been well meanwhile");
        std::thread::sleep(AFTER);
        assert_eq!(ailment.note(Some("b")), Some("b"));
        assert_eq!(ailment.note(None), Some("b"), "a moment's relief");
        assert_eq!(ailment.note(Some("c")), Some("c"));
        ailment.note(None);
        std::thread::sleep(CALM);
        assert_eq!(ailment.note(None), None);
    }
}
