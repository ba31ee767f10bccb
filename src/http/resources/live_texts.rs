//! The figures of frames as text, made once for all streams of a worker that send the same.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use headcount_actors::LiveFrame;
use headcount_domain::money::Currency;

/// How many texts are kept: streams of one project send the same within milliseconds.
const MAX_TEXTS: usize = 16;

thread_local! {
    static TEXTS: RefCell<VecDeque<(FiguresText, Option<Rc<str>>)>> = const { RefCell::new(VecDeque::new()) };
}

/// What a text is about. Its frames are those of these addresses, which are not used again while this is kept.
pub(super) struct FiguresText {
    frame: Weak<LiveFrame>,
    /// The frame that the client has.
    former: Option<Weak<LiveFrame>>,
    is_delta: bool,
    money: Option<Currency>,
}

impl FiguresText {
    pub(super) fn new(frame: &Arc<LiveFrame>, former: Option<&Arc<LiveFrame>>, is_delta: bool, money: Option<Currency>) -> Self {
        Self { frame: Arc::downgrade(frame), former: former.map(Arc::downgrade), is_delta, money }
    }

    fn is(&self, other: &Self) -> bool {
        let same_former = match (&self.former, &other.former) {
            (Some(one), Some(other)) => one.ptr_eq(other),
            (one, other) => one.is_none() && other.is_none(),
        };
        same_former && self.frame.ptr_eq(&other.frame) && (self.is_delta, self.money) == (other.is_delta, other.money)
    }

    /// Returns the text, made by `make` if it is not kept. `None`: there is nothing to send.
    pub(super) fn text(self, make: impl FnOnce() -> Option<String>) -> Option<Rc<str>> {
        TEXTS.with_borrow_mut(|texts| {
            if let Some((_, text)) = texts.iter().find(|(of, _)| of.is(&self)) {
                return text.clone();
            }
            let text: Option<Rc<str>> = make().map(Rc::from);
            texts.truncate(MAX_TEXTS - 1);
            texts.push_front((self, text.clone()));
            text
        })
    }
}
