//! Large answers: handed to the connection in slices, and bounded together while clients take their
//! time.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use actix_web::body::{BodySize, MessageBody};
use actix_web::web::Bytes;

/// The size of a slice: the part of an answer that a connection copies.
const SLICE_BYTES: usize = 16 << 10;
/// How many bytes all large answers may have together while they are under way.
const MAX_BYTES: usize = 64 << 20;

/// The large answers under way.
#[derive(Debug, Clone, Default)]
pub struct LargeAnswers(Arc<AtomicUsize>);

impl LargeAnswers {
    /// Whether an answer of this size is one of them.
    pub fn is_large(size: BodySize) -> bool {
        matches!(size, BodySize::Sized(bytes) if bytes > SLICE_BYTES as u64)
    }

    /// Takes an answer on its way. `None`: there are too many.
    pub fn slices(&self, bytes: Bytes) -> Option<Slices> {
        // A document that is part of the program takes no memory, however many read it.
        let counted = if bytes.is_unique() { bytes.len() } else { 0 };
        let slices = Slices { bytes, counted, all: self.clone() };
        (self.0.fetch_add(counted, Ordering::Relaxed) + counted <= MAX_BYTES).then_some(slices)
    }
}

/// The body of a large answer.
#[derive(Debug)]
pub struct Slices {
    bytes: Bytes,
    counted: usize,
    all: LargeAnswers,
}

impl Drop for Slices {
    fn drop(&mut self) {
        self.all.0.fetch_sub(self.counted, Ordering::Relaxed);
    }
}

impl MessageBody for Slices {
    type Error = Infallible;

    fn size(&self) -> BodySize {
        BodySize::Sized(self.bytes.len() as u64)
    }

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, Infallible>>> {
        let rest = &mut self.get_mut().bytes;
        if rest.is_empty() {
            return Poll::Ready(None);
        }
        let slice = rest.split_to(rest.len().min(SLICE_BYTES));
        Poll::Ready(Some(Ok(slice)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_answers_are_bounded_together_and_given_back() {
        let all = LargeAnswers::default();
        let mebibyte = || Bytes::from(vec![0; 1 << 20]);
        let mut under_way: Vec<Slices> = (0..64).map(|_| all.slices(mebibyte()).unwrap()).collect();
        assert!(all.slices(mebibyte()).is_none());
        assert!(all.slices(Bytes::from_static(&[0; 100_000])).is_some(), "a part of the program");
        under_way.pop();
        under_way.push(all.slices(mebibyte()).unwrap());
        drop(under_way);
        assert_eq!(all.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn slices_are_the_answer() {
        let bytes: Vec<u8> = (0..100_000_u32).map(|i| (i % 251) as u8).collect();
        let mut slices = LargeAnswers::default().slices(bytes.clone().into()).unwrap();
        assert_eq!(slices.size(), BodySize::Sized(100_000));
        let mut read = Vec::new();
        let mut cx = Context::from_waker(std::task::Waker::noop());
        while let Poll::Ready(Some(Ok(slice))) = Pin::new(&mut slices).poll_next(&mut cx) {
            assert!(slice.len() <= SLICE_BYTES);
            read.extend_from_slice(&slice);
        }
        assert_eq!(read, bytes);
    }
}
