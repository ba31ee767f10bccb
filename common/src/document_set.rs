//! Sets of items stored as documents, such as privacy requests.

use std::fmt::Display;
use std::marker::PhantomData;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::checked_json;
use crate::control_error::ControlError;
use crate::documents::{DocumentChange, Documents, DocumentsError, Visited};

/// How long to try to read a change that was made.
const FOLLOWED_WITHIN: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(500);

/// An item that is a document, such as a privacy request.
pub trait DocumentItem: Serialize + DeserializeOwned {
    /// The item's key.
    type Id: Display + FromStr;
    /// The item's name in messages.
    const WHAT: &'static str;
    /// The end of the name of the item's file, after the id.
    const SUFFIX: &'static str = ".json";
    /// The version of the content.
    const VERSION: u8 = 1;

    /// Whether the item belongs to the document of `id`.
    fn is_of(&self, id: &Self::Id) -> bool;
}

/// Waits until all others have applied the change with this number.
type Propagate = Box<dyn Fn(u64) + Send + Sync>;

/// The items of one kind that all nodes have.
pub struct DocumentSet<T> {
    documents: Arc<dyn Documents>,
    propagate: OnceLock<Propagate>,
    /// The last change that all other nodes are known to have applied.
    propagated: AtomicU64,
    items: PhantomData<fn() -> T>,
}

impl<T> std::fmt::Debug for DocumentSet<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DocumentSet").field("documents", &self.documents).finish_non_exhaustive()
    }
}

impl<T: DocumentItem> DocumentSet<T> {
    /// Returns the items that are kept as `documents`.
    pub fn new(documents: Arc<dyn Documents>) -> Self {
        Self { documents, propagate: OnceLock::new(), propagated: AtomicU64::new(0), items: PhantomData }
    }

    /// Calls `propagate` after each change, and waits for it.
    pub fn propagate_with(&self, propagate: impl Fn(u64) + Send + Sync + 'static) {
        let _is_first = self.propagate.set(Box::new(propagate)).is_ok();
    }

    /// Passes changed items and the ids of removed ones to `apply`. Returns the number of the last
    /// change.
    ///
    /// # Errors
    /// The error of `apply`, and [`ControlError::Documents`] if the documents can't be read.
    pub fn follow(&self, apply: impl Fn(&T::Id, Option<T>) -> Result<(), ControlError>) -> Result<u64, ControlError> {
        self.documents.follow(&mut |DocumentChange { key, content }| {
            let Ok(id) = key.parse::<T::Id>() else { return Ok(Visited::Applied) };
            let item = content.map(|bytes| checked_json::decode(T::VERSION, bytes).filter(|item: &T| item.is_of(&id)));
            let is_unreadable = matches!(item, Some(None));
            if is_unreadable {
                tracing::error!(%id, "a {} can't be read, and is left out", T::WHAT);
            }
            apply(&id, item.flatten())?;
            Ok(if is_unreadable { Visited::Unreadable } else { Visited::Applied })
        })
    }

    /// Reads an item that was followed, if it exists.
    ///
    /// # Errors
    /// Returns a [`ControlError`] if it can't be read or is damaged.
    pub fn read(&self, id: &T::Id) -> Result<Option<T>, ControlError> {
        let Some(bytes) = self.documents.read(&id.to_string())? else { return Ok(None) };
        let item = checked_json::decode(T::VERSION, &bytes).filter(|item: &T| item.is_of(id));
        item.map(Some).ok_or_else(|| ControlError::Documents(format!("the {} {id} is damaged", T::WHAT)))
    }

    /// Changes an item, or removes it. Returns `false` if another change came first.
    pub fn put(&self, expected: u64, id: &T::Id, item: Option<&T>) -> Result<bool, ControlError> {
        let encoded = item.map(|item| checked_json::encode(T::VERSION, item)).transpose();
        let encoded = encoded.map_err(|error| ControlError::Documents(error.to_string()))?;
        is_made(self.documents.put(expected, DocumentChange { key: &id.to_string(), content: encoded.as_deref() }))
    }

    /// Calls `attempt` with the number of the last change until it returns something. `None` means
    /// that another change came first, so `attempt` decides again.
    ///
    /// # Errors
    /// The errors of `follow` and `attempt`, and [`ControlError::Documents`] if an attempt was
    /// refused without another change.
    pub fn attempt<R, E: From<ControlError>>(
        follow: impl Fn() -> Result<u64, ControlError>,
        mut attempt: impl FnMut(u64) -> Result<Option<R>, E>,
    ) -> Result<R, E> {
        let mut last = None;
        loop {
            let expected = follow()?;
            if last.replace(expected) == Some(expected) {
                let message = format!("a change of a {} is refused, and no other is there", T::WHAT);
                return Err(ControlError::Documents(message).into());
            }
            if let Some(made) = attempt(expected)? {
                return Ok(made);
            }
        }
    }

    /// Proves that no other change came after `expected`, whatever a broker says. Returns `false`
    /// if one did. `by` names the node and its purpose.
    ///
    /// # Errors
    /// Returns [`ControlError::Undecided`] or [`ControlError::Documents`].
    pub fn prove(&self, expected: u64, by: &str) -> Result<bool, ControlError> {
        is_made(self.documents.prove(expected, by))
    }

    /// Waits until all other nodes have applied a change, unless they are known to have.
    pub fn propagate(&self, number: u64) {
        if let Some(propagate) = self.propagate.get()
            && self.propagated.load(Ordering::Acquire) < number
        {
            propagate(number);
            self.propagated.fetch_max(number, Ordering::AcqRel);
        }
    }
}

/// Whether a change was made; `false` if another one came first.
fn is_made(changed: Result<(), DocumentsError>) -> Result<bool, ControlError> {
    match changed {
        Ok(()) => Ok(true),
        Err(DocumentsError::Conflict) => Ok(false),
        Err(DocumentsError::Undecided(why)) => Err(ControlError::Undecided(why)),
        Err(error @ (DocumentsError::TooLarge { .. } | DocumentsError::Unavailable(_))) => {
            Err(ControlError::Documents(error.to_string()))
        }
    }
}

/// Reads a change that was made, with `follow`, which may fail for a while. Its own error must not
/// be returned, since it would mean that nothing was changed. Blocks.
///
/// # Errors
/// Returns [`ControlError::Undecided`].
pub fn follow_made(follow: impl Fn() -> Result<u64, ControlError>) -> Result<u64, ControlError> {
    let began = Instant::now();
    loop {
        match follow() {
            Err(_) if began.elapsed() < FOLLOWED_WITHIN => std::thread::sleep(PAUSE),
            Err(error) => {
                let why = format!("it was, but the documents can't be read since: {error}");
                return Err(ControlError::Undecided(why));
            }
            followed => return followed,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_change_that_was_made_is_never_said_to_have_failed() {
        let silent = || Err(ControlError::Documents("no answer".to_owned()));
        let left = Cell::new(2);
        let soon = || if left.replace(left.get() - 1) > 0 { silent() } else { Ok(7) };
        assert_eq!(follow_made(soon).unwrap(), 7);
        assert!(matches!(follow_made(silent), Err(ControlError::Undecided(_))));
    }
}
