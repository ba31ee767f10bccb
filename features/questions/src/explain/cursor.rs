//! The cursor of an explanation: where the next page begins, and what the first one fixed.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use headcount_domain::facts::Moment;
use headcount_domain::figures::ExplainPlace;
use headcount_domain::{Day, Instant, Window};

const VERSION: u8 = 1;
/// The longest cursor that is read. None has more bytes.
pub(crate) const MAX_BYTES: usize = 256;

/// Where the next page of a question begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExplainCursor {
    /// The hash of the question.
    pub(crate) question: u64,
    /// The window of the first page.
    pub(crate) window: Window,
    pub(crate) place: ExplainPlace,
}

impl ExplainCursor {
    pub(crate) fn to_text(self) -> String {
        let Self { question, window, place: ExplainPlace { until, began, state, last } } = self;
        let mut bytes = vec![VERSION];
        bytes.extend(question.to_be_bytes());
        bytes.extend(window.start.0.to_be_bytes());
        bytes.extend(window.end.0.to_be_bytes());
        bytes.extend(until.to_be_bytes());
        bytes.extend(began.0.to_be_bytes());
        bytes.extend(state.to_be_bytes());
        for last in last {
            bytes.push(last.is_some().into());
            let Moment { time, position } = last.unwrap_or(Moment { time: Instant(0), position: 0 });
            bytes.extend(time.0.to_be_bytes());
            bytes.extend(position.to_be_bytes());
        }
        URL_SAFE_NO_PAD.encode(bytes)
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.len() > MAX_BYTES {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let mut rest = bytes.strip_prefix(&[VERSION])?;
        let question = u64::from_be_bytes(take(&mut rest)?);
        let window = Window { start: Day(i32::from_be_bytes(take(&mut rest)?)), end: Day(i32::from_be_bytes(take(&mut rest)?)) };
        let until = u64::from_be_bytes(take(&mut rest)?);
        let began = Instant(i64::from_be_bytes(take(&mut rest)?));
        let state = u64::from_be_bytes(take(&mut rest)?);
        let mut last = [None; 2];
        for last in &mut last {
            let [is_some] = take(&mut rest)?;
            let at =
                Moment { time: Instant(i64::from_be_bytes(take(&mut rest)?)), position: u64::from_be_bytes(take(&mut rest)?) };
            *last = Some(at).filter(|_| is_some == 1);
        }
        let cursor = Self { question, window, place: ExplainPlace { until, began, state, last } };
        // A window from elsewhere must not cost more than one that can be asked for.
        (rest.is_empty() && window.is_allowed()).then_some(cursor)
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back_and_others_are_none() {
        let last = Moment { time: Instant(-5), position: u64::MAX };
        for last in [[None, None], [Some(last), None], [None, Some(last)], [Some(last), Some(last)]] {
            let place = ExplainPlace { until: 9, began: Instant(7), state: u64::MAX - 1, last };
            let window = Window { start: Day(19_000), end: Day(20_000) };
            let cursor = ExplainCursor { question: 7, window, place };
            let text = cursor.to_text();
            assert_eq!(ExplainCursor::parse(&text), Some(cursor));
            for wrong in ["", "x", &text[1..], &format!("{text}AAAA"), &text.replacen('A', "B", 1), "****", &"A".repeat(300)] {
                assert_eq!(ExplainCursor::parse(wrong), None, "{wrong}");
            }
            for window in [Window { start: Day(5), end: Day(4) }, Window { start: Day(0), end: Day(i32::MAX) }] {
                assert_eq!(ExplainCursor::parse(&ExplainCursor { window, ..cursor }.to_text()), None, "{window:?}");
            }
        }
    }
}
