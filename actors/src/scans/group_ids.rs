//! The ids of a row group's events. Each distinct id is hashed once.

use std::rc::Rc;

use headcount_archive::{ArchiveError, TextColumn};
use headcount_domain::{IdentityLink, KeyHasher, RecordKey, SentKeys};

use super::active_users::Marks;
use super::sealed_group::{Rows, SealedGroup};

/// See the module.
pub(super) struct GroupIds<'h> {
    hasher: &'h KeyHasher,
    users: IdColumn,
    anonymous: IdColumn,
}

/// A column of ids, with what is known of each code.
struct IdColumn {
    texts: Rc<TextColumn>,
    keys: Vec<Option<RecordKey>>,
    /// The marks that each id was last given.
    last_marks: Vec<Option<Marks>>,
}

impl IdColumn {
    fn read(group: &SealedGroup<'_>, name: &str) -> Result<Self, ArchiveError> {
        let texts = group.texts(name)?;
        let count = texts.null() as usize;
        Ok(Self { texts, keys: vec![None; count], last_marks: vec![None; count] })
    }

    fn code(&self, row: usize) -> Option<u32> {
        Some(self.texts.codes()[row]).filter(|code| *code < self.texts.null())
    }

    fn key(&mut self, code: u32, hash: impl Fn(&str) -> RecordKey) -> Option<RecordKey> {
        let known = self.keys.get_mut(code as usize)?;
        if known.is_none() {
            *known = self.texts.value(code).map(hash);
        }
        *known
    }

    /// Whether the last call for this id had other marks.
    fn are_other_marks(&mut self, code: u32, marks: Marks) -> bool {
        self.last_marks.get_mut(code as usize).is_some_and(|last| last.replace(marks) != Some(marks))
    }
}

impl<'h> GroupIds<'h> {
    pub(super) fn read(group: &SealedGroup<'_>, hasher: &'h KeyHasher) -> Result<Self, ArchiveError> {
        Ok(Self { hasher, users: IdColumn::read(group, "user_id")?, anonymous: IdColumn::read(group, "anonymous_id")? })
    }

    /// The codes of the user and of the anonymous id of a row.
    pub(super) fn codes(&self, row: usize) -> (Option<u32>, Option<u32>) {
        (self.users.code(row), self.anonymous.code(row))
    }

    /// Returns the first link of each anonymous id of these rows, in order.
    pub(super) fn links(&mut self, group: &SealedGroup<'_>, rows: &Rows) -> Vec<IdentityLink> {
        let mut is_linked = vec![false; self.anonymous.keys.len()];
        let mut links = Vec::new();
        rows.for_each(|row| {
            let (Some(user), Some(anonymous)) = self.codes(row) else { return };
            if !std::mem::replace(&mut is_linked[anonymous as usize], true) {
                let keys = SentKeys { user: self.user(user), other: self.anonymous(anonymous) };
                links.extend(keys.link(group.order_of(row)));
            }
        });
        links
    }

    /// The key of the user or the anonymous id of a row.
    pub(super) fn named(&mut self, row: usize) -> Option<RecordKey> {
        match self.codes(row) {
            (Some(user), _) => self.user(user),
            (None, Some(anonymous)) => self.anonymous(anonymous),
            (None, None) => None,
        }
    }

    /// The key of a user.
    pub(super) fn user(&mut self, code: u32) -> Option<RecordKey> {
        self.users.key(code, |id| self.hasher.user(id))
    }

    /// The key of an anonymous id.
    pub(super) fn anonymous(&mut self, code: u32) -> Option<RecordKey> {
        self.anonymous.key(code, |id| self.hasher.anonymous(id))
    }

    /// The key of a user, unless the last call for it had the same marks.
    pub(super) fn marked_user(&mut self, code: u32, marks: Marks) -> Option<RecordKey> {
        if self.users.are_other_marks(code, marks) { self.user(code) } else { None }
    }

    /// The key of an anonymous id, unless the last call for it had the same marks.
    pub(super) fn marked_anonymous(&mut self, code: u32, marks: Marks) -> Option<RecordKey> {
        if self.anonymous.are_other_marks(code, marks) { self.anonymous(code) } else { None }
    }
}
