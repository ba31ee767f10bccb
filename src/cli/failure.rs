//! Why a command failed.

/// The reason that a command failed, as one line for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Failure(pub(crate) String);

impl Failure {
    /// Creates a failure from what was attempted and the error.
    pub(crate) fn new(doing: impl std::fmt::Display, error: impl std::fmt::Display) -> Self {
        Self(format!("{doing}: {error}"))
    }
}

macro_rules! failure_from {
    ($($error:ty),* $(,)?) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self(error.to_string())
            }
        })*
    };
}

failure_from!(
    headcount_actors::OpenError,
    headcount_actors::registry::RegistryError,
    headcount_storage::format::FormatError,
    headcount_storage::lock::LockError,
    crate::config::ConfigError,
    crate::open_files::TooFewFiles,
    crate::server::StartError,
    crate::telemetry::BadFilter,
    std::io::Error,
);
