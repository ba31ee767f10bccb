//! `headcount verify --erased`: searches for traces of erased people.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use headcount_actors::{ErasedFinding, ErasedSearch, search_erased};
use headcount_api::command::{CommandSettings, Failure, is_held, print, runtime, stop_signal};
use headcount_api::open_files;
use serde::Serialize;

/// The minimum length of a text. Shorter texts are in many files by chance.
const MIN_TEXT_BYTES: usize = 4;
/// The number of places that the text output lists.
const SHOWN: usize = 20;

/// The flags of the search.
#[derive(Debug, clap::Args)]
pub(crate) struct ErasedFlags {
    /// Search a stopped server's data directory for erased people, by the keyed hashes of their ids
    #[arg(long, conflicts_with_all = ["backup", "quick", "url"])]
    erased: bool,
    /// File with more texts to search for, one per line: ids, e-mail addresses, names
    #[arg(long, value_name = "FILE", requires = "erased")]
    ids: Option<PathBuf>,
    /// Further text to search for
    #[arg(value_name = "TEXT", requires = "erased")]
    texts: Vec<String>,
}

#[derive(Debug, Serialize)]
struct ErasedAnswer {
    status: &'static str,
    erasures: u64,
    unfinished: u64,
    ids: u64,
    texts: u64,
    files: u64,
    bytes: u64,
    events: u64,
    pairs: u64,
    found: Vec<ErasedPlace>,
    truncated: bool,
}

#[derive(Debug, Serialize)]
struct ErasedPlace {
    place: String,
    what: String,
}

impl ErasedFlags {
    /// Whether the flags ask for this search.
    pub(super) fn is_given(&self) -> bool {
        self.erased
    }

    /// Searches. Returns success if it finds nothing and no erasure is unfinished.
    pub(super) fn run(&self, settings: &dyn CommandSettings, json: bool) -> Result<ExitCode, Failure> {
        let texts = self.texts()?;
        if is_held(settings.data_dir())? {
            return Err(Failure("a server uses the data directory: stop it, or search a restored backup".into()));
        }
        let found = search(settings, texts)?;
        let is_clean = found.is_clean();
        let answer = ErasedAnswer::of(found);
        print(json, &answer, || answer.describe())?;
        Ok(if is_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn texts(&self) -> Result<Vec<String>, Failure> {
        let mut texts = self.texts.clone();
        if let Some(path) = &self.ids {
            let lines = std::fs::read_to_string(path).map_err(|error| Failure::new(path.display(), error))?;
            texts.extend(lines.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()));
        }
        match texts.iter().position(|text| text.len() < MIN_TEXT_BYTES) {
            Some(place) => Err(Failure(format!("text {} is too short: it needs at least {MIN_TEXT_BYTES} bytes", place + 1))),
            None => Ok(texts),
        }
    }
}

/// Searches on a thread of its own, and ends early on SIGTERM and SIGINT.
fn search(settings: &dyn CommandSettings, texts: Vec<String>) -> Result<ErasedSearch, Failure> {
    open_files::raise()?;
    let (config, stop) = (settings.engine(), Arc::<AtomicBool>::default());
    runtime()?.block_on(async {
        let stopped = stop_signal()?;
        let (work_stop, (done, mut wait)) = (Arc::clone(&stop), tokio::sync::oneshot::channel());
        let work = move || done.send(search_erased(&config, &texts, &work_stop));
        std::thread::Builder::new().name("search".into()).spawn(work)?;
        let ended = tokio::select! {
            ended = &mut wait => ended,
            () = stopped => {
                stop.store(true, Ordering::Relaxed);
                wait.await
            }
        };
        Ok(ended??)
    })
}

impl ErasedAnswer {
    fn of(found: ErasedSearch) -> Self {
        let status = match (found.findings.is_empty(), found.unfinished) {
            (false, _) => "found",
            (true, 0) => "clean",
            (true, _) => "unfinished",
        };
        let ErasedSearch { erasures, unfinished, ids, texts, files, bytes, events, pairs, findings, has_more } = found;
        let place = |ErasedFinding { place, what }| ErasedPlace { place, what };
        let found = findings.into_iter().map(place).collect();
        Self { status, erasures, unfinished, ids, texts, files, bytes, events, pairs, found, truncated: has_more }
    }

    fn describe(&self) -> String {
        let shown = self.found.iter().take(SHOWN);
        let mut lines: Vec<String> = shown.map(|ErasedPlace { place, what }| format!("found: {place}: {what}")).collect();
        if self.unfinished > 0 {
            lines.push(format!(
                "{} erasures are unfinished: start the server, and wait until their requests are completed",
                self.unfinished
            ));
        }
        let Self { status, erasures, ids, texts, files, events, pairs, .. } = self;
        lines.push(format!(
            "{status}: {ids} ids of {erasures} erasures and {texts} texts, in {events} events, {pairs} pairs and {files} files"
        ));
        lines.join("\n")
    }
}
