//! The cursor of a list of events: where the next page begins, and what the first one fixed.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use headcount_domain::facts::Moment;
use headcount_domain::ids::ProjectId;
use headcount_domain::intake::event::Position;
use headcount_domain::time::{Day, Instant, Window};
use xxhash_rust::xxh3::Xxh3;

const VERSION: u8 = 1;
const BYTES: usize = 1 + 8 + 4 + 4 + 8 + 8 + 8 + 8;

/// Where the next page of a question begins. It has no life span: it expires only if the events that it means are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// The hash of the question.
    pub(crate) question: u64,
    /// The window of the first page.
    pub(crate) window: Window,
    /// The last position of the project at the first page.
    pub(crate) until: Position,
    /// The number of the start in which the first page was asked for, which tells what `until` means.
    pub(crate) start_number: u64,
    /// The moment of the last event of the page before.
    pub(crate) last: Moment,
}

/// Returns the hash of a question: of its project and of its parameters as they were sent.
pub(crate) fn question_hash(project: ProjectId, parameters: &[Option<&str>]) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(&project.0.to_be_bytes());
    for parameter in parameters {
        let length = parameter.map_or(u64::MAX, |text| text.len() as u64);
        hash.update(&length.to_be_bytes());
        hash.update(parameter.unwrap_or_default().as_bytes());
    }
    hash.digest()
}

impl Cursor {
    pub(crate) fn to_text(self) -> String {
        let Self { question, window, until, start_number, last } = self;
        let mut bytes = Vec::with_capacity(BYTES);
        bytes.push(VERSION);
        bytes.extend(question.to_be_bytes());
        bytes.extend(window.start.0.to_be_bytes());
        bytes.extend(window.end.0.to_be_bytes());
        bytes.extend(until.to_be_bytes());
        bytes.extend(start_number.to_be_bytes());
        bytes.extend(last.time.0.to_be_bytes());
        bytes.extend(last.position.to_be_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let bytes: [u8; BYTES] = URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()?;
        let (version, mut rest) = bytes.split_first()?;
        if *version != VERSION {
            return None;
        }
        let long = |rest: &mut &[u8]| {
            let (number, after) = rest.split_first_chunk::<8>()?;
            *rest = after;
            Some(*number)
        };
        let question = u64::from_be_bytes(long(&mut rest)?);
        let [a, b, c, d, e, f, g, h] = long(&mut rest)?;
        let window = Window { start: Day(i32::from_be_bytes([a, b, c, d])), end: Day(i32::from_be_bytes([e, f, g, h])) };
        let until = u64::from_be_bytes(long(&mut rest)?);
        let start_number = u64::from_be_bytes(long(&mut rest)?);
        let time = Instant(i64::from_be_bytes(long(&mut rest)?));
        let position = u64::from_be_bytes(long(&mut rest)?);
        Some(Self { question, window, until, start_number, last: Moment { time, position } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back_and_others_are_none() {
        let window = Window { start: Day(-3), end: Day(20_000) };
        let last = Moment { time: Instant(-5), position: u64::MAX };
        let cursor = Cursor { question: 7, window, until: 9, start_number: u64::MAX - 1, last };
        let text = cursor.to_text();
        assert_eq!(Cursor::parse(&text), Some(cursor));
        for wrong in ["", "x", &text[1..], &format!("{text}A"), &text.replacen('A', "B", 1), "****"] {
            assert_eq!(Cursor::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn another_question_has_another_hash() {
        let hash = |parameters: &[Option<&str>]| question_hash(ProjectId(1), parameters);
        let all = [hash(&[None, None]), hash(&[Some(""), None]), hash(&[Some("a"), None]), hash(&[None, Some("a")])];
        for (place, one) in all.iter().enumerate() {
            assert!(all[place + 1..].iter().all(|other| one != other));
        }
        assert_ne!(question_hash(ProjectId(2), &[None, None]), all[0]);
    }
}
