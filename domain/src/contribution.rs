//! Contributions: the kind of the entity that contributes to a rollup, and whether its contribution is added or taken out.

/// The kind of an entity that contributes to rollups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntityKind {
    /// One identity.
    Identity,
    /// An identity that has an id and so can come back, in addition to [`Self::Identity`]: not a cookieless visitor.
    WithId,
    /// One account: a company, or an identity that has none.
    Account,
    /// The events of nobody (without consent): money, but never a user and never an account.
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
    #[must_use]
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
