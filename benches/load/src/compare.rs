//! The comparison of two runs.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use serde::Serialize;

use super::failure::Failure;
use super::report::{KindReport, LoadReport, LoadSettings, QUANTILES};

/// A figure of both runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Pair {
    /// The figure of the first run.
    a: f64,
    /// The figure of the second run.
    b: f64,
    /// The second divided by the first; `None` if the first is 0.
    ratio: Option<f64>,
}

/// Two runs side by side, as `--json` prints them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Comparison {
    /// The differing settings, with both values.
    differing: BTreeMap<String, [String; 2]>,
    /// Figures by kind of request; `all` is the whole load.
    kinds: BTreeMap<String, BTreeMap<&'static str, Pair>>,
    /// Figures of the runs as a whole.
    run: BTreeMap<&'static str, Pair>,
}

/// Reads the report of a run.
pub(crate) fn read(file: &Path) -> Result<LoadReport, Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| Failure::new(file.display(), error))?;
    serde_json::from_str(&text)
        .map_err(|error| Failure(format!("{} is not the output of `headcount-load --json`: {error}", file.display())))
}

impl Pair {
    fn new(a: f64, b: f64) -> Self {
        Self { a, b, ratio: (a > 0.0).then(|| (b / a * 1_000.0).round() / 1_000.0) }
    }
}

impl Comparison {
    /// Compares two runs. Leaves out kinds of requests that only one run has.
    pub(crate) fn new(a: &LoadReport, b: &LoadReport) -> Self {
        let both = a.kinds.iter().filter_map(|(name, of_a)| Some((name.clone(), figures(of_a, b.kinds.get(name)?))));
        let mut kinds: BTreeMap<String, BTreeMap<&'static str, Pair>> = both.collect();
        kinds.insert("all".to_owned(), figures(&a.all, &b.all));
        let mut run = BTreeMap::new();
        let knee = |report: &LoadReport| report.ramp.as_ref().and_then(|ramp| ramp.knee);
        if let (Some(a), Some(b)) = (knee(a), knee(b)) {
            run.insert("knee", Pair::new(a, b));
        }
        if let (Some(a), Some(b)) = (&a.server, &b.server) {
            run.insert("server_cores", Pair::new(a.cores, b.cores));
            run.insert("server_memory_after_mib", Pair::new(a.memory_after_mib, b.memory_after_mib));
            if let (Some(a), Some(b)) = (a.cpu_us_per_event, b.cpu_us_per_event) {
                run.insert("server_cpu_us_per_event", Pair::new(a, b));
            }
        }
        Self { differing: differing(a, b), kinds, run }
    }

    /// Formats the comparison as text.
    pub(crate) fn describe(&self) -> String {
        let mut text = String::new();
        for (name, [a, b]) in &self.differing {
            let _ = writeln!(text, "differs  {name}: {a} / {b}");
        }
        let _ = writeln!(text, "{:<34} {:>12} {:>12} {:>8}", "", "A", "B", "B / A");
        let row = |text: &mut String, name: &str, pair: &Pair| {
            let ratio = pair.ratio.map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.3}"));
            let _ = writeln!(text, "{name:<34} {:>12.2} {:>12.2} {ratio:>8}", pair.a, pair.b);
        };
        for (kind, figures) in &self.kinds {
            for name in
                ["requests/s", "events/s"].into_iter().chain(QUANTILES.iter().map(|(name, _)| *name)).chain(["max", "failed %"])
            {
                if let Some(pair) = figures.get(name) {
                    let unit = if name.starts_with('p') || name == "max" { " ms" } else { "" };
                    row(&mut text, &format!("{kind}  {name}{unit}"), pair);
                }
            }
        }
        for (name, pair) in &self.run {
            row(&mut text, name, pair);
        }
        text.trim_end().to_owned()
    }
}

fn figures(a: &KindReport, b: &KindReport) -> BTreeMap<&'static str, Pair> {
    let latencies = QUANTILES.iter().map(|(name, _)| *name).chain(["max"]);
    let mut figures: BTreeMap<&'static str, Pair> =
        latencies.map(|name| (name, Pair::new(a.latency(name), b.latency(name)))).collect();
    figures.insert("requests/s", Pair::new(a.requests_per_second, b.requests_per_second));
    figures.insert("failed %", Pair::new(a.failed() * 100.0, b.failed() * 100.0));
    if a.events_per_second + b.events_per_second > 0.0 {
        figures.insert("events/s", Pair::new(a.events_per_second, b.events_per_second));
    }
    figures
}

/// Settings that make a comparison one of different things.
fn differing(a: &LoadReport, b: &LoadReport) -> BTreeMap<String, [String; 2]> {
    let described = |report: &LoadReport| {
        let LoadSettings { version, mix, batch, users, projects, hot, duplicates, idle, streams, dashboards, threads } =
            report.settings.clone();
        let rate =
            report.target_rate.filter(|_| report.ramp.is_none()).map_or("as fast as possible".into(), |rate| rate.to_string());
        [
            ("mode", report.mode.clone()),
            ("rate", rate),
            ("connections", report.connections.to_string()),
            ("version", version),
            ("mix", mix),
            ("batch", batch.to_string()),
            ("users", users.to_string()),
            ("projects", projects.to_string()),
            ("hot", hot.to_string()),
            ("duplicates", duplicates.to_string()),
            ("idle", idle.to_string()),
            ("streams", streams.to_string()),
            ("dashboards", dashboards.to_string()),
            ("threads", threads.to_string()),
        ]
    };
    let pairs = described(a).into_iter().zip(described(b));
    pairs.filter(|((_, a), (_, b))| a != b).map(|((name, a), (_, b))| (name.to_owned(), [a, b])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(rate: f64, p99: f64) -> LoadReport {
        let kind = KindReport {
            requests_per_second: rate,
            events_per_second: rate,
            latency_ms: [("p99".to_owned(), p99)].into(),
            ..KindReport::default()
        };
        LoadReport {
            mode: "closed".into(),
            all: kind.clone(),
            kinds: [("single".to_owned(), kind)].into(),
            ..LoadReport::default()
        }
    }

    #[test]
    fn ratios_are_of_the_second_run_by_the_first() {
        let (a, mut b) = (run(1_000.0, 4.0), run(1_500.0, 2.0));
        b.settings.mix = "single=1".into();
        b.kinds.insert("poll".into(), KindReport::default());
        let comparison = Comparison::new(&a, &b);
        assert_eq!(comparison.kinds.keys().collect::<Vec<_>>(), ["all", "single"]);
        let single = &comparison.kinds["single"];
        assert_eq!(single["requests/s"].ratio, Some(1.5));
        assert_eq!(single["p99"], Pair { a: 4.0, b: 2.0, ratio: Some(0.5) });
        assert_eq!(single["p50"].ratio, None);
        assert_eq!(comparison.differing, [("mix".to_owned(), [String::new(), "single=1".to_owned()])].into());
        let text = comparison.describe();
        assert!(text.contains("differs  mix:  / single=1"), "{text}");
        assert!(text.lines().any(|line| line.starts_with("single  p99 ms") && line.ends_with("0.500")), "{text}");
    }

    #[test]
    fn other_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.json");
        assert!(read(&file).unwrap_err().0.contains("a.json"));
        std::fs::write(&file, "{\"recorded\": 3}").unwrap();
        assert!(read(&file).unwrap_err().0.contains("headcount-load --json"));
        // What an earlier version printed.
        let former = r#"{"mode":"closed","target_rate":null,"connections":4,"seconds":1.0,"requests":5,"requests_per_second":5.0,
            "events_per_second":5.0,"by_status":{"202":5},"failures":{},"latency_ms":{"p50":1.0,"max":2.0}}"#;
        std::fs::write(&file, former).unwrap();
        let report = read(&file).unwrap();
        assert_eq!((report.all.requests, report.all.by_status["202"], report.all.latency("max")), (5, 5, 2.0));
    }
}
