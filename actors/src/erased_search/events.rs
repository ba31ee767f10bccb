//! Searches decoded events.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind};
use std::ops::ControlFlow;
use std::path::Path;

use headcount_archive::{Archive, ArchiveError, BaseItem, Catalog};
use headcount_domain::intake::event::SentIds;
use headcount_domain::{Event, Fault, Position, ProjectId};
use headcount_storage::log::{ReadLog, Record};
use serde::Deserialize;
use serde_json::Value;

use super::needles::{Needles, text};
use super::pairs;
use super::report::ErasedSearch;
use crate::event_codec::{self, LogRecord};
use crate::fault;

fn look(needles: &Needles, place: &str, position: Position, event: &Event, found: &mut ErasedSearch) {
    found.events += 1;
    if let Some(what) = needles.of_event(position, event) {
        found.add(format!("{place} (position {position})"), what.to_owned());
    }
    if needles.has_texts()
        && let Ok(json) = serde_json::to_vec(event)
        && let Some(number) = needles.text_in(&json)
    {
        found.add(format!("{place} (position {position})"), text(number));
    }
}

/// Searches the events of the log.
pub(crate) fn search_log(
    log: &dyn ReadLog,
    needles: &Needles,
    found: &mut ErasedSearch,
    is_stopped: &dyn Fn() -> bool,
) -> Result<(), Fault> {
    let mut undecoded = Ok(());
    let read = log.read(&|_| Some(0), &mut |record: Record<'_>| match event_codec::decode(record.payload) {
        Ok(LogRecord::Events(events)) => {
            for (position, event) in (record.first..).zip(events) {
                look(needles, "log/", position, &event, found);
            }
            if is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
        Ok(LogRecord::Floor(_)) => ControlFlow::Continue(()),
        Err(error) => {
            undecoded = Err(Fault::damaged_log(error.to_string()));
            ControlFlow::Break(())
        }
    });
    read.map_err(fault::of_log)?;
    undecoded
}

/// Searches the files and bases of the archive in `root`.
pub(crate) fn search_archive(
    root: &Path,
    catalog: &Catalog,
    needles: &Needles,
    found: &mut ErasedSearch,
    is_stopped: &dyn Fn() -> bool,
) -> Result<(), Fault> {
    for (project, _) in catalog.projects() {
        let archive = Archive::existing(root, project).map_err(fault::of_archive)?;
        for entry in archive.manifest().files() {
            let place = format!("archive/project={project}/{}", entry.name);
            let file = archive.file(entry).map_err(fault::of_archive)?;
            for row in file.rows(0) {
                let row = row.map_err(fault::of_archive)?;
                look(needles, &place, row.position, &row.event, found);
            }
            if is_stopped() {
                return Ok(());
            }
        }
        if let Some(base) = archive.manifest().base() {
            let place = format!("archive/project={project}/{}", base.name());
            search_base(&archive, &place, needles, found).map_err(fault::of_archive)?;
        }
    }
    Ok(())
}

fn search_base(archive: &Archive, place: &str, needles: &Needles, found: &mut ErasedSearch) -> Result<(), ArchiveError> {
    let Some(mut base) = archive.base()? else { return Ok(()) };
    while let Some(item) = base.next()? {
        if let BaseItem::Pair(key, value) = item {
            pairs::look(needles, place, &key, &value, found);
        }
    }
    Ok(())
}

#[derive(Deserialize)]
struct DeadLetter {
    position: Position,
    event: Event,
}

/// Searches the dead letters.
pub(crate) fn search_dead_letters(path: &Path, needles: &Needles, found: &mut ErasedSearch) -> io::Result<()> {
    let Some(lines) = lines(path)? else { return Ok(()) };
    for line in lines {
        // A torn last line is no event. Its bytes are searched with those of all files.
        if let Ok(DeadLetter { position, event }) = serde_json::from_slice(&line?) {
            look(needles, "dead-letters.ndjson", position, &event, found);
        }
    }
    Ok(())
}

/// An event of an artifact.
#[derive(Deserialize)]
struct ExportedEvent {
    position: Position,
    project_id: String,
    name: String,
    user_id: Option<String>,
    anonymous_id: Option<String>,
    metadata: Option<Value>,
}

impl ExportedEvent {
    /// The address that the event reports.
    fn email(&self) -> Option<&str> {
        let is_trait = self.name == "identify" || self.user_id.is_some();
        self.metadata.as_ref().filter(|_| is_trait)?.get("email")?.as_str()
    }
}

/// Searches the events of the artifacts in `dir`, one per line.
pub(crate) fn search_exports(dir: &Path, needles: &Needles, found: &mut ErasedSearch) -> io::Result<()> {
    let entries = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for line in lines(&path)?.into_iter().flatten() {
            let line = line?;
            let line = line.strip_suffix(b",").unwrap_or(&line);
            let Ok(event) = serde_json::from_slice::<ExportedEvent>(line) else { continue };
            let Ok(project) = event.project_id.parse::<ProjectId>() else { continue };
            found.events += 1;
            let id = |id: &Option<String>| id.as_deref().map(Into::into);
            let who = SentIds { user_id: id(&event.user_id), anonymous_id: id(&event.anonymous_id), visitor: None };
            if let Some(what) = needles.of_ids(project, event.position, &who, event.email()) {
                found.add(format!("exports/{name} (position {})", event.position), what.to_owned());
            }
        }
    }
    Ok(())
}

/// The lines of a file, if it exists.
fn lines(path: &Path) -> io::Result<Option<impl Iterator<Item = io::Result<Vec<u8>>>>> {
    match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        file => Ok(Some(BufReader::new(file?).split(b'\n'))),
    }
}
