//! Privacy requests: what was asked for about a person, how far it is, and what was done.
//!
//! A request is a file of its own, or a document that members of a cluster share, which is only ever replaced as a whole: the subject of a request is personal data, so it is in no log, and is gone once the
//! subject is erased. What an export makes is another file, its artifact. What an erasure does to events is not here: `erasures`, `archiver::erasures`; nor how
//! an artifact is made: `engine::exporting`.

mod artifacts;
mod backed_up;
mod export_jobs;
mod export_state;
mod files;
mod place;
mod recovery;
mod request;
mod requests;
mod sharing;

pub use export_state::{ArtifactGone, PrivacyFailure};
pub use request::{
    ErasedProject, PrivacyAudit, PrivacyAuditEvent, PrivacyRequest, PrivacyRequestKind, PrivacyStatus, PrivacySubject,
};
pub use requests::{MAX_PRIVACY_REQUESTS, PrivacyPage, PrivacyQuery};

pub(crate) use artifacts::{ArtifactWriter, EXPORTS_DIR};
pub(crate) use backed_up::{fitted_to, write_backed_up};
pub(crate) use export_state::{Artifact, ExportState};
pub(crate) use files::{PRIVACY_DIR, PrivacyFiles};
pub(crate) use place::SharedPrivacy;
pub(crate) use recovery::AtStart;
pub(crate) use request::{PrivacyKeys, PrivacyOutcome};
pub(crate) use requests::PrivacyRequests;
pub(crate) use sharing::shortened;
