//! Contributions: the kind of the entity that contributes to a rollup, and whether its contribution
//! is added or taken out.

/// The kind of an entity that contributes to rollups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntityKind {
    /// One identity.
    Identity,
    /// An identity that has an id, and so can come back; not a cookieless visitor. It counts in
    /// addition to [`Self::Identity`].
    WithId,
    /// One account: a company, or an identity without a company.
    Account,
    /// The events without consent: they have money, but never a user or an account.
    Nobody,
}

/// Whether a contribution is added or taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// Added.
    Plus,
    /// Taken out.
    Minus,
}

impl Sign {
    /// Returns 1 or -1.
    pub fn factor(self) -> i64 {
        match self {
            Self::Plus => 1,
            Self::Minus => -1,
        }
    }

    /// The inverse.
    #[must_use]
    pub fn opposite(self) -> Self {
        match self {
            Self::Plus => Self::Minus,
            Self::Minus => Self::Plus,
        }
    }
}
