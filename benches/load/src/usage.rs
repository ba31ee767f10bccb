//! The processor time and memory of the server's process, from `/proc` on Linux.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::failure::Failure;

/// The clock ticks per second in `/proc`, which are the same on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// The process of the server.
#[derive(Debug, Clone)]
pub(crate) struct ServerProcess {
    folder: PathBuf,
}

/// The usage at one time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Usage {
    cpu_seconds: f64,
    resident_mib: f64,
    peak_mib: f64,
}

/// The usage during a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ServerUsage {
    /// Processor time, in seconds.
    pub(crate) cpu_seconds: f64,
    /// Processor time per time, in cores.
    pub(crate) cores: f64,
    /// Processor time per recorded event, in microseconds, including questions.
    pub(crate) cpu_us_per_event: Option<f64>,
    /// Memory before the run, in MiB.
    pub(crate) memory_before_mib: f64,
    /// Memory after the run, in MiB.
    pub(crate) memory_after_mib: f64,
    /// Peak memory since the process started, in MiB.
    pub(crate) memory_peak_mib: f64,
}

impl ServerProcess {
    /// Finds the process.
    pub(crate) fn new(pid: u32) -> Result<Self, Failure> {
        let process = Self { folder: Path::new("/proc").join(pid.to_string()) };
        match process.usage() {
            Some(_) => Ok(process),
            None => Err(Failure(format!("--pid {pid}: there is no such process, or this system has no /proc"))),
        }
    }

    /// The usage so far; `None` if the process is gone.
    pub(crate) fn usage(&self) -> Option<Usage> {
        let text = |name: &str| std::fs::read_to_string(self.folder.join(name)).ok();
        usage(&text("stat")?, &text("status")?)
    }
}

fn usage(stat: &str, status: &str) -> Option<Usage> {
    // The name, in parentheses, may have spaces.
    let mut ticks = stat.rsplit_once(')')?.1.split_whitespace().skip(11).map(|field| field.parse::<f64>().unwrap_or(0.0));
    let cpu_seconds = (ticks.next()? + ticks.next()?) / TICKS_PER_SECOND;
    let mib = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().trim_end_matches(" kB").parse::<f64>().ok().map(|kib| kib / 1024.0)
    };
    Some(Usage { cpu_seconds, resident_mib: mib("VmRSS:")?, peak_mib: mib("VmHWM:")? })
}

impl ServerUsage {
    /// The usage between two times.
    pub(crate) fn between(before: Usage, after: Usage, seconds: f64, events: f64) -> Self {
        let cpu_seconds = after.cpu_seconds - before.cpu_seconds;
        let rounded = |number: f64| (number * 100.0).round() / 100.0;
        Self {
            cpu_seconds: rounded(cpu_seconds),
            cores: rounded(cpu_seconds / seconds),
            cpu_us_per_event: (events > 0.0).then(|| rounded(cpu_seconds / events * 1e6)),
            memory_before_mib: rounded(before.resident_mib),
            memory_after_mib: rounded(after.resident_mib),
            memory_peak_mib: rounded(after.peak_mib),
        }
    }

    /// Formats the usage as text.
    pub(crate) fn describe(&self) -> String {
        let per_event = self.cpu_us_per_event.map_or_else(String::new, |us| format!(", {us:.1} µs per event"));
        format!(
            "server  {:.2} cores{per_event}; memory {:.0} MiB before, {:.0} MiB after, {:.0} MiB peak",
            self.cores, self.memory_before_mib, self.memory_after_mib, self.memory_peak_mib
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_read_of_a_process_with_any_name() {
        let stat = "12 (a ) b) S 1 2 3 4 5 6 7 8 9 10 250 150 1 1";
        let status = "Name:\ta\nVmHWM:\t    4096 kB\nVmRSS:\t    2048 kB\n";
        let before = usage(stat, status).unwrap();
        assert_eq!(before, Usage { cpu_seconds: 4.0, resident_mib: 2.0, peak_mib: 4.0 });
        let after = Usage { cpu_seconds: 5.0, resident_mib: 3.0, peak_mib: 6.0 };
        let used = ServerUsage::between(before, after, 2.0, 1_000.0);
        assert_eq!((used.cpu_seconds, used.cores, used.cpu_us_per_event), (1.0, 0.5, Some(1_000.0)));
        assert_eq!((used.memory_before_mib, used.memory_after_mib, used.memory_peak_mib), (2.0, 3.0, 6.0));
        assert_eq!(ServerUsage::between(before, after, 2.0, 0.0).cpu_us_per_event, None);
        assert_eq!(usage("", status), None);
    }

    #[test]
    fn this_process_is_found_and_none_is_not() {
        assert!(ServerProcess::new(std::process::id()).unwrap().usage().unwrap().resident_mib > 0.0);
        assert!(ServerProcess::new(u32::MAX).is_err());
    }
}
