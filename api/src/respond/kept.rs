//! Answers about figures, as they were written, by their tags: a question that is repeated needs no
//! shard while nothing it depends on changes.
//!
//! A tag changes before an event is acknowledged that may change the answer, so what is kept under
//! the current tag is the current answer. Lists of events are not kept, nor is what a request with
//! `Cache-Control: no-cache` asks for looked up.

use std::collections::HashMap;

use actix_web::http::header;
use actix_web::web::Bytes;
use parking_lot::Mutex;

use crate::request::HttpRequest;
use crate::respond::etag::EntityTag;

/// Maximum bytes of a generation; there are two.
const MAX_BYTES: usize = 512 << 10;
/// Maximum bytes of one answer with its question.
const MAX_ANSWER_BYTES: usize = 32 << 10;
/// What an answer takes besides.
const OVERHEAD_BYTES: usize = 160;

/// See the module.
#[derive(Debug, Default)]
pub struct KeptAnswers(Mutex<Generations>);

/// Answers move to the newer generation when they are asked for; the older one is dropped when the newer is full.
#[derive(Debug, Default)]
struct Generations {
    newer: HashMap<EntityTag, Kept>,
    older: HashMap<EntityTag, Kept>,
    newer_bytes: usize,
}

#[derive(Debug, Clone)]
struct Kept {
    /// The question. Tags are hashes, and nobody may get the answer to another one.
    question: Box<[u8]>,
    answer: Bytes,
}

impl Kept {
    fn bytes(&self) -> usize {
        self.question.len() + self.answer.len() + OVERHEAD_BYTES
    }
}

/// A question whose answer may be kept.
#[derive(Debug)]
pub(crate) struct KeepableQuestion<'a> {
    tag: &'a EntityTag,
    question: Box<[u8]>,
}

impl<'a> KeepableQuestion<'a> {
    /// A question about the project or organization `id`.
    pub(crate) fn new(tag: &'a EntityTag, id: u64, request: &HttpRequest, body: &[u8]) -> Self {
        let parts = [&id.to_be_bytes()[..], request.path().as_bytes(), b"?", request.query_string().as_bytes(), b"\n", body];
        Self { tag, question: parts.concat().into() }
    }
}

/// Whether a kept answer may answer a request.
pub(crate) fn may_be_kept(request: &HttpRequest) -> bool {
    let mut controls = request.headers().get_all(header::CACHE_CONTROL).filter_map(|value| value.to_str().ok());
    !controls.any(|control| control.contains("no-cache") || control.contains("no-store"))
}

impl KeptAnswers {
    /// Returns the answer to a question, if it is kept.
    pub(crate) fn get(&self, question: &KeepableQuestion<'_>) -> Option<Bytes> {
        let mut generations = self.0.lock();
        let known = match generations.newer.get(question.tag) {
            Some(known) => known.clone(),
            None => {
                let known = generations.older.remove(question.tag)?;
                generations.insert(question.tag, known.clone());
                known
            }
        };
        (known.question == question.question).then_some(known.answer)
    }

    /// Keeps the answer to a question.
    pub(crate) fn keep(&self, question: KeepableQuestion<'_>, answer: &Bytes) {
        let KeepableQuestion { tag, question } = question;
        let kept = Kept { question, answer: answer.clone() };
        if kept.bytes() <= MAX_ANSWER_BYTES {
            self.0.lock().insert(tag, kept);
        }
    }
}

impl Generations {
    fn insert(&mut self, tag: &EntityTag, kept: Kept) {
        if self.newer_bytes + kept.bytes() > MAX_BYTES {
            (self.older, self.newer_bytes) = (std::mem::take(&mut self.newer), 0);
        }
        self.newer_bytes += kept.bytes();
        if let Some(former) = self.newer.insert(tag.clone(), kept) {
            self.newer_bytes = self.newer_bytes.saturating_sub(former.bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn tag(number: usize) -> EntityTag {
        EntityTag::of_document(&number.to_be_bytes())
    }

    fn ask(kept: &KeptAnswers, number: usize, id: u64) -> Option<Bytes> {
        kept.get(&KeepableQuestion::new(&tag(number), id, &HttpRequest::from(TestRequest::default().to_request()), b""))
    }

    fn keep(kept: &KeptAnswers, number: usize, answer: &Bytes) {
        kept.keep(KeepableQuestion::new(&tag(number), 1, &HttpRequest::from(TestRequest::default().to_request()), b""), answer);
    }

    #[test]
    fn what_is_asked_for_stays_and_memory_is_bounded() {
        let kept = KeptAnswers::default();
        let answer = Bytes::from(vec![b'a'; 4096]);
        for number in 0..2_000 {
            keep(&kept, number, &answer);
            assert_eq!(ask(&kept, 0, 1), Some(answer.clone()), "{number}");
            let generations = kept.0.lock();
            let bytes = |all: &HashMap<EntityTag, Kept>| all.values().map(Kept::bytes).sum::<usize>();
            assert_eq!(bytes(&generations.newer), generations.newer_bytes);
            assert!(generations.newer_bytes <= MAX_BYTES && bytes(&generations.older) <= MAX_BYTES);
        }
        assert_eq!(ask(&kept, 1, 1), None);
        keep(&kept, 3_000, &Bytes::from(vec![b'a'; MAX_ANSWER_BYTES]));
        assert_eq!(ask(&kept, 3_000, 1), None, "too large");
    }

    #[test]
    fn an_answer_belongs_to_its_question() {
        let kept = KeptAnswers::default();
        keep(&kept, 0, &Bytes::from_static(b"{}"));
        assert_eq!(ask(&kept, 0, 2), None);
        let anew =
            HttpRequest::from(TestRequest::default().insert_header((header::CACHE_CONTROL, "max-age=0, no-cache")).to_request());
        assert!(!may_be_kept(&anew) && may_be_kept(&HttpRequest::from(TestRequest::default().to_request())));
    }
}
