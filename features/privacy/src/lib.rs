//! Privacy requests: what was asked for about a person, how far it is, and what was done.
//!
//! A request is a document, which is only ever replaced as a whole: its subject is personal data,
//! so that no log may have it, and it is gone once the subject is erased. An export makes a file,
//! its artifact (`exporting`). The engine erases: `engine::erasing` and `archiver::erasures` in
//! `headcount-actors`.

#![forbid(unsafe_code)]

mod artifacts;
#[cfg(feature = "cluster")]
mod backed_up;
mod changes;
mod cli;
mod erasure_turns;
mod export_jobs;
mod export_state;
mod exporting;
mod feature;
mod homes;
mod http;
mod making;
mod privacy;
mod recovery;
mod request;
mod requests;
mod subject_answer;
mod working;

#[cfg(feature = "cluster")]
use headcount_actors::{MovedKind, plain_documents};
use headcount_api::endpoints;
use headcount_api::endpoints::Endpoints;
use http::{download, requests as privacy_requests};

pub use cli::PrivacyCommand;
pub use export_state::{ArtifactGone, PrivacyFailure};
pub use exporting::{Download, DownloadError};
pub use privacy::{Privacy, PrivacySettings, install};
pub use request::{
    ErasedProject, PrivacyAudit, PrivacyAuditEvent, PrivacyRequest, PrivacyRequestKind, PrivacyStatus, PrivacySubject,
};
pub use requests::{MAX_PRIVACY_REQUESTS, PrivacyPage, PrivacyQuery};

/// The requests of an installation that moves into a cluster.
#[cfg(feature = "cluster")]
pub const MOVED: MovedKind = MovedKind {
    kind: request::KIND,
    name: "privacy_requests",
    read: |from| plain_documents::<PrivacyRequest>(from, request::KIND),
};

/// The endpoints.
pub const ENDPOINTS: Endpoints = endpoints! {
    privacy_requests => list: Organization(PrivacyRequestsRead, Member), Home(Reads);
    privacy_requests => create: Organization(PrivacyRequestsWrite, Admin), Home(Records);
    privacy_requests => show: Organization(PrivacyRequestsRead, Member), Home(Reads);
    download => download: Organization(PrivacyRequestsRead, Member), Home(ReadsForLong);
};
