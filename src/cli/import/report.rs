//! What an import says: how far it is, which lines were refused, and the sum at the end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::events::RefusedLine;
use super::lines::Progress;

/// How many refused lines are shown one by one.
const SHOWN: usize = 20;

/// The sum of an import, as `--json` prints it.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Summary {
    /// It can be read only once, so that no other run goes on with it.
    #[serde(skip)]
    pub(crate) is_stream: bool,
    /// Lines read in this run.
    pub(crate) lines: u64,
    /// Events that were recorded.
    pub(crate) recorded: u64,
    /// Events whose `external_id` was there already.
    pub(crate) duplicates: u64,
    /// Events that the project's policy drops.
    pub(crate) dropped: u64,
    /// Requests that are no answered pages.
    pub(crate) skipped: u64,
    /// Lines that are no valid events.
    pub(crate) refused: u64,
    /// The same by code.
    pub(crate) refused_by_code: BTreeMap<String, u64>,
    /// The first of them.
    pub(crate) refused_lines: Vec<RefusedLine>,
    /// The line that this run began with, if an earlier one had done those before.
    pub(crate) resumed_at_line: Option<u64>,
    /// The number of the last line, if it has no end yet; the next run reads it.
    pub(crate) unfinished_line: Option<u64>,
    /// Whether the end of the file was reached, or a file was followed until a signal came.
    pub(crate) finished: bool,
    /// How long it took, in seconds.
    pub(crate) seconds: f64,
    /// Recorded events a second.
    pub(crate) events_per_second: u64,
}

/// Counts, and shows the progress.
pub(crate) struct Reporter {
    /// So far.
    pub(crate) summary: Summary,
    began: Instant,
    bar: ProgressBar,
    progress: Arc<Progress>,
}

impl Reporter {
    /// Begins; `total_bytes` of the file, if it is known; `is_stream`: it can be read only once.
    pub(crate) fn new(total_bytes: Option<u64>, is_stream: bool) -> Self {
        // Hidden where standard error is no terminal.
        let bar = total_bytes.map_or_else(ProgressBar::no_length, ProgressBar::new);
        let template = match total_bytes {
            Some(_) => "{bar:32} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {msg} {eta}",
            None => "{binary_bytes} {binary_bytes_per_sec} {msg}",
        };
        bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { summary: Summary { is_stream, ..Summary::default() }, began: Instant::now(), bar, progress: Arc::default() }
    }

    /// Another file begins: what its reader is to keep up to date.
    pub(crate) fn begin_file(&mut self) -> Arc<Progress> {
        self.progress = Arc::default();
        Arc::clone(&self.progress)
    }

    /// Notes lines that were refused.
    pub(crate) fn refuse(&mut self, lines: Vec<RefusedLine>) {
        for refused in lines {
            self.summary.refused += 1;
            *self.summary.refused_by_code.entry(refused.code.to_string()).or_default() += 1;
            if self.summary.refused_lines.len() < SHOWN {
                let RefusedLine { line, code, message } = &refused;
                self.bar.suspend(|| eprintln!("line {line}: {message} [{code}]"));
                self.summary.refused_lines.push(refused);
            }
        }
    }

    /// Brings the bar up to date.
    pub(crate) fn show(&self) {
        self.bar.set_position(self.progress.read_bytes.load(Ordering::Relaxed));
        self.bar.set_message(format!("{} events", self.summary.recorded));
    }

    /// Ends.
    pub(crate) fn end(mut self) -> Summary {
        let unfinished = self.progress.unfinished_line.load(Ordering::Relaxed);
        self.summary.unfinished_line = (unfinished > 0).then_some(unfinished);
        self.bar.finish_and_clear();
        let took = self.began.elapsed().max(Duration::from_millis(1));
        self.summary.seconds = (took.as_secs_f64() * 1_000.0).round() / 1_000.0;
        let per_second = u128::from(self.summary.recorded) * 1_000 / took.as_millis().max(1);
        self.summary.events_per_second = u64::try_from(per_second).unwrap_or(u64::MAX);
        self.summary
    }
}

impl Summary {
    /// Whether there were lines, and all of them were refused.
    pub(crate) fn is_all_refused(&self) -> bool {
        self.refused > 0 && self.recorded + self.duplicates + self.dropped == 0
    }

    /// For people.
    pub(crate) fn describe(&self) -> String {
        let mut text = String::new();
        if let Some(line) = self.resumed_at_line.filter(|_| self.lines == 0 && self.finished) {
            let done = line - 1;
            text.push_str(&format!("nothing new after line {done}; --again begins at the first line\n"));
        } else if let Some(line) = self.resumed_at_line {
            text.push_str(&format!("resumed at line {line}\n"));
        }
        text.push_str(&format!("{} lines in {:.1} s: {} recorded", self.lines, self.seconds, self.recorded));
        for (count, what) in [
            (self.duplicates, "duplicates"),
            (self.dropped, "dropped by the project's policy"),
            (self.skipped, "requests left out (no answered pages)"),
            (self.refused, "refused"),
        ] {
            if count > 0 {
                text.push_str(&format!(", {count} {what}"));
            }
        }
        text.push_str(&format!(" ({} events/s)", self.events_per_second));
        for (code, count) in &self.refused_by_code {
            text.push_str(&format!("\n  refused: {count} {code}"));
        }
        if let Some(line) = self.unfinished_line {
            text.push_str(&format!("\nline {line} has no end yet: the same command reads it when it has"));
        }
        if !self.finished {
            text.push_str("\nnot finished");
            text.push_str(if self.is_stream { "" } else { ": the same command goes on where this one stopped" });
        }
        text
    }
}
