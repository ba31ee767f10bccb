//! What a rollup is: cells that hold a sum over entities of what each contributes.
//!
//! A late event, a link, a refund and an erasure are one move: the old contribution is taken out, the facts change, and
//! the new contribution is put in. A rollup says what one entity's facts contribute; it never sees an event.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Serialize, de::DeserializeOwned};

use crate::facts::{Change, Facts};

/// As what an entity contributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// One identity.
    Identity,
    /// One account: a company, or an identity that has none.
    Account,
    /// The events of nobody (without consent): money, but never a user and never an account.
    Nobody,
}

/// Whether a contribution is put in or taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// Put in.
    Plus,
    /// Taken out.
    Minus,
}

impl Sign {
    /// 1 or -1.
    #[must_use]
    pub fn factor(self) -> i64 {
        match self {
            Self::Plus => 1,
            Self::Minus => -1,
        }
    }

    /// What undoes it.
    #[must_use]
    pub fn opposite(self) -> Self {
        match self {
            Self::Plus => Self::Minus,
            Self::Minus => Self::Plus,
        }
    }
}

/// Cells that are kept. A new kind is one file in `rollups/` and one line in its list.
pub trait Kept {
    /// Its tag on disk: unique, never reused.
    const TAG: u8;
    /// Its name in logs and in `verify`.
    const NAME: &'static str;
    /// What one bucket holds.
    type Cell: Cell;
}

/// One maintained figure: cells that are a sum over entities of what each contributes.
pub trait Rollup: Kept {
    /// Whether `change` can alter what an entity contributes at `level`. `true` is always sound; `false` is the fast path.
    fn concerned(level: Level, change: Change) -> bool;

    /// Adds, with `sign`, what `facts` contribute from what `change` touches. Called only if [concerned](Rollup::concerned).
    fn contribute(level: Level, facts: &Facts, change: Change, sign: Sign, cells: &mut Cells<Self::Cell>);
}

/// The content of one bucket: an element of a group, with an empty one that isn't stored.
pub trait Cell: Default + Clone + PartialEq + std::fmt::Debug + Serialize + DeserializeOwned + Send + 'static {
    /// Whether it is the neutral element.
    fn is_empty(&self) -> bool;
}

/// The cells of one kind in one project, by bucket: a day, a month, or whatever the kind counts in.
#[derive(Debug, Clone)]
pub struct Cells<C> {
    by_bucket: BTreeMap<i32, C>,
    dirty: BTreeSet<i32>,
}

impl<C> Default for Cells<C> {
    fn default() -> Self {
        Self { by_bucket: BTreeMap::new(), dirty: BTreeSet::new() }
    }
}

impl<C: Cell> PartialEq for Cells<C> {
    /// Compares what the cells say, not what has been saved.
    fn eq(&self, other: &Self) -> bool {
        self.by_bucket == other.by_bucket
    }
}

impl<C: Cell> Cells<C> {
    /// Changes the cell of `bucket`; an empty one is dropped, so that equal sums are equal bytes.
    pub fn change(&mut self, bucket: i32, change: impl FnOnce(&mut C)) {
        let cell = self.by_bucket.entry(bucket).or_default();
        change(cell);
        if cell.is_empty() {
            self.by_bucket.remove(&bucket);
        }
        self.dirty.insert(bucket);
    }

    /// The cell of `bucket`, if it is not empty.
    #[must_use]
    pub fn get(&self, bucket: i32) -> Option<&C> {
        self.by_bucket.get(&bucket)
    }

    /// The non-empty cells of the buckets from `first` to `last`, both included, in order.
    pub fn range(&self, first: i32, last: i32) -> impl DoubleEndedIterator<Item = (i32, &C)> {
        let range = (first <= last).then(|| self.by_bucket.range(first..=last));
        range.into_iter().flatten().map(|(bucket, cell)| (*bucket, cell))
    }

    /// All non-empty cells, in order of their buckets.
    pub fn iter(&self) -> impl Iterator<Item = (i32, &C)> {
        self.by_bucket.iter().map(|(bucket, cell)| (*bucket, cell))
    }

    /// All non-empty cells, the last bucket first.
    pub fn iter_back(&self) -> impl Iterator<Item = (i32, &C)> {
        self.by_bucket.iter().rev().map(|(bucket, cell)| (*bucket, cell))
    }

    /// Puts a saved cell back; it counts as saved.
    pub fn restore(&mut self, bucket: i32, cell: C) {
        self.by_bucket.insert(bucket, cell);
    }

    /// The buckets that changed since the last call, with what they hold now (`None`: empty).
    pub fn take_dirty(&mut self) -> impl Iterator<Item = (i32, Option<&C>)> {
        let dirty = std::mem::take(&mut self.dirty);
        dirty.into_iter().map(|bucket| (bucket, self.by_bucket.get(&bucket)))
    }

    /// How many cells are not empty.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_bucket.len()
    }

    /// Whether no cell holds anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_bucket.is_empty()
    }
}
