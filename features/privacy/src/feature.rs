//! What privacy requests do when something happens in the engine.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant as Stopwatch};

#[cfg(feature = "cluster")]
use headcount_actors::MovedDocuments;
use headcount_actors::{Feature, SubjectKeys};
#[cfg(feature = "cluster")]
use headcount_common::ControlError;
use headcount_control::RegistryError;
#[cfg(feature = "cluster")]
use headcount_domain::ids::ProjectId;
use headcount_domain::{OrganizationId, Position, RecordKey};

#[cfg(feature = "cluster")]
use super::backed_up::MovedRequests;
use super::privacy::Privacy;
use super::request::KIND;

/// How long the end of the engine waits for exports that are being made.
const END_TIMEOUT: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(5);

impl Feature for Privacy {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn start(self: Arc<Self>) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let privacy = Arc::clone(&self);
        let work = move || runtime.block_on(privacy.work());
        let thread = std::thread::Builder::new().name(KIND.into()).spawn(work)?;
        let _only_start = self.thread.set(thread);
        Ok(())
    }

    fn close(&self) {
        self.requests.made.notify_one();
    }

    /// Waits for what is being written. It may be this thread that writes, so not for ever.
    fn save(&self) {
        let began = Stopwatch::now();
        while self.thread.get().is_some_and(|thread| !thread.is_finished()) && began.elapsed() < END_TIMEOUT {
            std::thread::sleep(POLL);
        }
    }

    fn takes(&self, partition: u16, _: Position) {
        self.gave_up(partition);
    }

    fn took(&self, _: u16) {
        self.requests.made.notify_one();
    }

    fn gave_up(&self, partition: u16) {
        self.requests.give_up(partition);
    }

    /// Exports with their events lose their artifacts.
    fn projects_deleted(&self) {
        self.requests.made.notify_one();
    }

    /// A former home may have recorded an erasure without its request.
    fn control_changed(&self) {
        self.requests.made.notify_one();
    }

    fn erased(&self, organization: OrganizationId, keys: &SubjectKeys) -> Result<(), RegistryError> {
        self.withdraw_exports(organization, keys)
    }

    fn erased_with(&self, organization: OrganizationId, email: RecordKey) -> SubjectKeys {
        self.requests.erased_with(organization, email)
    }

    #[cfg(feature = "cluster")]
    fn for_backup(&self, _: &dyn Fn(ProjectId) -> bool) -> Result<Box<dyn MovedDocuments>, ControlError> {
        Ok(Box::new(MovedRequests::new(&self.requests)))
    }
}
