//! Privacy requests: what was asked for about a person, how far it is, and what was done.
//!
//! A request is a document, which is only ever replaced as a whole: its subject is personal data,
//! so that no log may have it, and it is gone once the subject is erased. An export makes a file,
//! its artifact. `engine::exporting` makes artifacts; `erasures` and `archiver::erasures` remove
//! events.

mod artifacts;
#[cfg(feature = "cluster")]
mod backed_up;
mod changes;
mod export_jobs;
mod export_state;
mod homes;
mod recovery;
mod request;
mod requests;

pub use export_state::{ArtifactGone, PrivacyFailure};
pub use request::{
    ErasedProject, PrivacyAudit, PrivacyAuditEvent, PrivacyRequest, PrivacyRequestKind, PrivacyStatus, PrivacySubject,
};
pub use requests::{MAX_PRIVACY_REQUESTS, PrivacyPage, PrivacyQuery};

pub(crate) use artifacts::{ArtifactWriter, EXPORTS_DIR};
#[cfg(feature = "cluster")]
pub(crate) use backed_up::{fitted_to, write_backed_up};
pub(crate) use export_state::{Artifact, ExportState};
pub(crate) use recovery::AtStart;
pub(crate) use request::{PRIVACY_KIND, PrivacyKeys, PrivacyOutcome};
pub(crate) use requests::PrivacyRequests;
