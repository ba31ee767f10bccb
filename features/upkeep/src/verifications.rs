//! `POST /admin/verify`: recomputes every figure from the recorded events, while the server runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix_web::error::Error;
use actix_web::http::header;
use actix_web::web::Bytes;
use futures_util::stream;
use headcount_actors::verify::{DamagedFile, DifferingCell, UnverifiedPartition, VerifiedProject, VerifyError, VerifyReport};
use headcount_api::endpoint::*;
use headcount_domain::ProjectId;
use serde::Deserialize;
use tokio::sync::oneshot::{self, Receiver};

/// How often a space is sent while the verification goes on, so that nobody on the way takes the connection for dead.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);
/// Refusals within this time have their own status.
const FIRST_LOOK: Duration = Duration::from_millis(300);

/// A project whose figures were recomputed and compared.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct VerifiedProjectAnswer {
    /// The project.
    project_id: String,
    /// The position of the last event that the figures reflect.
    position: u64,
    /// The number of events that they were recomputed from.
    pub(crate) events: u64,
    /// The number of cells and records that were compared.
    pub(crate) cells: u64,
    /// The number of cells that are older than what is kept of the events, and are taken as they are.
    frozen: u64,
}

/// A cell whose stored value differs from the recomputed one.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct DifferingCellAnswer {
    /// Where the node of a cluster answers that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<String>,
    /// The project.
    pub(crate) project_id: String,
    /// The rollup, index or kind of record.
    pub(crate) rollup: String,
    /// The key. Its day comes first, if it has one.
    pub(crate) key: String,
    /// The stored value; null if there is none.
    pub(crate) stored: Option<String>,
    /// The recomputed value; null if there should be none.
    pub(crate) recomputed: Option<String>,
}

/// A file that is not what was written.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct DamagedFileAnswer {
    /// Where the node of a cluster answers that found it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<String>,
    /// Its path in the data directory, or its address if it is an object that the nodes of a cluster share.
    pub(crate) file: String,
    /// What is wrong with it.
    pub(crate) reason: String,
}

/// A partition of a cluster of which not everything was verified.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct UnverifiedPartitionAnswer {
    /// The number of the partition.
    pub(crate) partition: u16,
    /// Where the node answers that should have done it; absent if no node had the partition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<String>,
    /// Why it was not.
    pub(crate) reason: String,
}

/// The result of a verification.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct VerifyAnswer {
    /// `clean`; `incomplete`: nothing wrong was found, but partitions of a cluster are not verified; `differs`: figures differ; `damaged`: files are damaged.
    pub(crate) status: String,
    /// The projects that were recomputed.
    pub(crate) projects: Vec<VerifiedProjectAnswer>,
    /// The number of differing cells.
    pub(crate) differing: u64,
    /// The first 1,000 of them.
    pub(crate) cells: Vec<DifferingCellAnswer>,
    /// The damaged files.
    pub(crate) damaged: Vec<DamagedFileAnswer>,
    /// The partitions of a cluster of which not everything was verified.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) not_verified: Vec<UnverifiedPartitionAnswer>,
}

impl VerifyAnswer {
    /// The answer of a report.
    pub(crate) fn of(report: &VerifyReport) -> Self {
        let project = |(id, found): (&ProjectId, &VerifiedProject)| {
            let VerifiedProject { position, events, cells, frozen } = *found;
            VerifiedProjectAnswer { project_id: id.to_string(), position, events, cells, frozen }
        };
        let cell = |cell: &DifferingCell| {
            let DifferingCell { node, project, rollup, key, stored, recomputed } = cell.clone();
            DifferingCellAnswer { node, project_id: project.to_string(), rollup, key, stored, recomputed }
        };
        let damaged = |damaged: &DamagedFile| {
            let DamagedFile { node, file, reason } = damaged.clone();
            DamagedFileAnswer { node, file, reason }
        };
        let not_verified = |(partition, why): (&u16, &UnverifiedPartition)| {
            let UnverifiedPartition { node, reason } = why.clone();
            UnverifiedPartitionAnswer { partition: *partition, node, reason }
        };
        Self {
            status: report.status().as_str().to_owned(),
            projects: report.projects.iter().map(project).collect(),
            differing: report.differing,
            cells: report.cells.iter().map(cell).collect(),
            damaged: report.damaged.iter().map(damaged).collect(),
            not_verified: report.not_verified.iter().map(not_verified).collect(),
        }
    }

    /// Whether everything is as it should be.
    pub(crate) fn is_clean(&self) -> bool {
        self.status == "clean"
    }

    /// Whether nothing wrong was found, and not everything was looked at.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.status == "incomplete"
    }
}

query_parameters! {
    /// What is verified.
    pub(crate) struct VerifyParameters {
        /// Only check the files: checksums of log, archive and tables.
        quick: Flag,
    }
}

type Outcome = Result<VerifyReport, VerifyError>;

/// Recomputes the figures of every project from its recorded events, compares them, and checks all files.
///
/// It takes as long as replaying all events, at the lowest priority. In a cluster, each node does so with the partitions that it has. The answer begins with a space every few seconds until it is there. One
/// that fails later than at once is an error object with the status 200. It ends when the client closes the connection.
#[utoipa::path(
    post, path = "/admin/verify", tag = "operations", operation_id = "verify", params(VerifyParameters),
    responses((status = 200, description = "What was found.", body = VerifyAnswer), ConflictErrors),
    security(("operator_token" = []))
)]
pub(crate) async fn verify(ApiCall { state, request, .. }: ApiCall) -> Result<HttpResponse> {
    let quick = VerifyParameters::read(&request, &Calendar::new(&state, headcount_domain::time::Timezone::UTC))?.quick.0;
    let id = request.id().as_str().to_owned();
    let (engine, stop) = (state.engine.clone(), Arc::<AtomicBool>::default());
    let (done, mut outcome) = oneshot::channel();
    let running = Running(Arc::clone(&stop));
    tokio::spawn(async move { drop(done.send(engine.verify(quick, &stop).await)) });
    if let Ok(ended) = tokio::time::timeout(FIRST_LOOK, &mut outcome).await {
        let report = ended.unwrap_or(Err(VerifyError::Stopped)).map_err(|error| refused(&error))?;
        return Ok(HttpResponse::Ok().json(VerifyAnswer::of(&report)));
    }
    Ok(HttpResponse::Ok()
        .content_type("application/json")
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .streaming(parts(outcome, running, id)))
}

/// Ends the verification when nobody waits for it.
struct Running(Arc<AtomicBool>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Spaces until the outcome is there, and then the outcome.
fn parts(outcome: Receiver<Outcome>, running: Running, id: String) -> impl stream::Stream<Item = Result<Bytes, Error>> {
    stream::unfold(Some((outcome, running, id)), |waiting| async move {
        let (mut outcome, running, id) = waiting?;
        match tokio::time::timeout(SIGN_OF_LIFE, &mut outcome).await {
            Err(_) => Some((Ok(Bytes::from_static(b" ")), Some((outcome, running, id)))),
            Ok(ended) => {
                let answer = match ended.unwrap_or(Err(VerifyError::Stopped)) {
                    Ok(report) => serde_json::to_vec(&VerifyAnswer::of(&report)),
                    Err(error) => serde_json::to_vec(&refused(&error).body(&id)),
                };
                Some((answer.map(Bytes::from).map_err(Error::from), None))
            }
        }
    })
}

fn refused(error: &VerifyError) -> ApiError {
    let code = match error {
        VerifyError::Running => ErrorCode::VerifyRunning,
        VerifyError::Stopped | VerifyError::DiskFull | VerifyError::NotSaved | VerifyError::Rebuilding(_) => {
            ErrorCode::Overloaded
        }
        VerifyError::Directory(_) | VerifyError::Failed(_) => {
            tracing::error!(%error, "a verification could not be made");
            ErrorCode::Internal
        }
    };
    // Only the operator asks.
    ApiError::new(code, error.to_string())
}
