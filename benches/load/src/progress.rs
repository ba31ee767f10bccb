//! The progress line on standard error.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use super::measured::{Measurement, Tally};

/// Shows a line each second.
#[derive(Debug)]
pub(crate) struct ProgressLine {
    is_shown: bool,
    is_terminal: bool,
    failures: u64,
}

impl ProgressLine {
    /// Creates the progress line: on a terminal, or if `wanted`.
    pub(crate) fn new(wanted: bool) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        Self { is_shown: wanted || is_terminal, is_terminal, failures: 0 }
    }

    /// Shows the last complete second of a measurement. Called once per second.
    pub(crate) fn show(&mut self, measurement: &Measurement, rate: Option<f64>) {
        if !self.is_shown {
            return;
        }
        let now = Instant::now();
        let wanted = rate.map_or_else(String::new, |rate| format!(" of {rate:.0}"));
        let text = match now.checked_duration_since(measurement.from()).map(|since| since.as_secs()) {
            None | Some(0) => format!("warm-up{wanted}"),
            Some(seconds) => {
                let tally = measurement.in_second(seconds - 1);
                self.failures += tally.unexpected + tally.unanswered();
                format!("{}  {}", clock(seconds), describe(&tally, &wanted, self.failures))
            }
        };
        self.print(&text);
    }

    /// Shows a step before or after the requests.
    pub(crate) fn say(&self, text: &str) {
        if self.is_shown {
            self.print(text);
        }
    }

    fn print(&self, text: &str) {
        // A closed standard error must not end the run.
        let _ =
            if self.is_terminal { write!(std::io::stderr(), "\r\x1b[K{text}") } else { writeln!(std::io::stderr(), "{text}") };
    }

    /// Removes the line from the terminal.
    pub(crate) fn clear(&self) {
        if self.is_shown && self.is_terminal {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

fn clock(seconds: u64) -> String {
    let elapsed = Duration::from_secs(seconds).as_secs();
    format!("{:02}:{:02}", elapsed / 60, elapsed % 60)
}

fn describe(tally: &Tally, wanted: &str, failures: u64) -> String {
    let latency = if tally.responses() == 0 {
        "no answers".to_owned()
    } else {
        format!("p50 {:.2} ms  p99 {:.2} ms", tally.quantile_ms(0.5), tally.quantile_ms(0.99))
    };
    format!("{}{wanted} requests/s  {} events/s  {latency}  {failures} failed", tally.responses(), tally.events)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::{Recorder, RequestOutcome, Times};
    use crate::mix::RequestKind;

    #[test]
    fn the_line_tells_rate_latency_and_failures() {
        let measurement = Measurement::new(Instant::now());
        let mut recorder = Recorder::new(measurement.clone());
        let due = measurement.from();
        let times = Times { due, answered: due + Duration::from_millis(4) };
        for _ in 0..10 {
            recorder.record(RequestKind::Single, times, &Ok(RequestOutcome { status: 202, is_expected: true, events: 1 }), b"");
        }
        recorder.flush();
        let line = describe(&measurement.in_second(0), " of 20", 3);
        assert_eq!(line, "10 of 20 requests/s  10 events/s  p50 4.00 ms  p99 4.00 ms  3 failed");
        assert!(describe(&measurement.in_second(1), "", 0).contains("0 requests/s  0 events/s  no answers"));
        assert_eq!(clock(3_725), "62:05");
    }
}
