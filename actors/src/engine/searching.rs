//! Searches a data directory that no process has open for data of erased identities.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use headcount_common::secrets::{KEYS_DIR, Secrets};
use headcount_control::Registry;
use headcount_domain::{Fault, OrganizationId, ProjectId};
use headcount_storage::format::Format;
use headcount_storage::lock::DirLock;
use headcount_storage::log::{Log, LogOptions};

use super::config::EngineConfig;
use super::derived::Derived;
use super::open::store_options;
use crate::deleted_projects::DeletedProjects;
use crate::erased_search::{
    EXPORTS_DIR, ErasedSearch, Needles, search_archive, search_dead_letters, search_exports, search_files, search_log,
    search_pairs,
};
use crate::fault;
use crate::history::SealedEvents;
use crate::verify::VerifyError;

/// Searches a data directory that no process has open for erased ids and for `texts`. Changes
/// nothing in it, except an unfinished write at the end of the log.
///
/// # Errors
/// Returns a [`VerifyError`]: some data could not be read, or the search was stopped.
pub fn search_erased(config: &EngineConfig, texts: &[String], stop: &AtomicBool) -> Result<ErasedSearch, VerifyError> {
    let dir = &config.data_dir;
    for name in ["FORMAT", "keys/hash.key"] {
        if !dir.join(name).exists() {
            return Err(VerifyError::Directory(format!("{} is not a data directory: it has no {name}", dir.display())));
        }
    }
    let _lock = DirLock::acquire(dir).map_err(VerifyError::directory)?;
    let format = Format::open(dir).map_err(VerifyError::directory)?;
    let secrets = Secrets::open(&dir.join(KEYS_DIR)).map_err(VerifyError::directory)?;
    let registry = Registry::open(dir).map_err(VerifyError::directory)?;
    let erasures = registry.erasures();
    let unreadable = |what: &str, error: &dyn std::fmt::Display| Fault::io(format!("{what} could not be read: {error}"));
    let needles = Needles::new(secrets.hasher(), organizations(&registry)?, &erasures, texts);
    let needles = needles.map_err(|error| VerifyError::Directory(format!("that is too much to look for: {error}")))?;
    let mut found = ErasedSearch {
        erasures: erasures.len() as u64,
        unfinished: erasures.iter().filter(|erasure| !erasure.is_done).count() as u64,
        ids: needles.ids() as u64,
        texts: texts.len() as u64,
        ..ErasedSearch::default()
    };
    let is_stopped = || stop.load(Ordering::Relaxed);
    let deleted = std::sync::Arc::new(DeletedProjects::new(registry.deletions()));
    let sealed = SealedEvents::open(&dir.join("archive"), deleted).map_err(fault::of_archive)?;
    search_archive(&sealed.root, &sealed.catalog(), &needles, &mut found, &is_stopped)?;
    {
        let options = LogOptions { prepare_ahead: false, ..config.log.clone() };
        let (log, _) = Log::open(dir.join("log"), options).map_err(fault::of_log)?;
        search_log(&log.reader(), &needles, &mut found, &is_stopped)?;
    }
    let derived = Derived { dir, options: store_options(config), hasher: secrets.hasher(), is_shared: false };
    if let Some(store) = derived.open_as_it_is(format)? {
        search_pairs(&store, &needles, &mut found, &is_stopped)?;
    }
    let dead = search_dead_letters(&dir.join("dead-letters.ndjson"), &needles, &mut found);
    dead.map_err(|error| unreadable("dead-letters.ndjson", &error))?;
    let exports = search_exports(&dir.join(EXPORTS_DIR), &needles, &mut found);
    exports.map_err(|error| unreadable("an export", &error))?;
    let files = search_files(dir, dir, &needles, &mut found, &is_stopped);
    files.map_err(|error| unreadable("a file", &error))?;
    if is_stopped() { Err(VerifyError::Stopped) } else { Ok(found) }
}

/// The organizations of all projects.
fn organizations(registry: &Registry) -> Result<HashMap<ProjectId, OrganizationId>, VerifyError> {
    let mut organizations = HashMap::new();
    for organization in registry.organizations() {
        let projects = registry.projects(organization.id).map_err(VerifyError::directory)?;
        organizations.extend(projects.iter().map(|project| (project.id, organization.id)));
    }
    Ok(organizations)
}
