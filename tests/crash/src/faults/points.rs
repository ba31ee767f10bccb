//! The file operations of a run without faults, and the selection of those to fail.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// Operations that change nothing; the campaign does not fail reads.
const READING: [&str; 2] = ["Read", "List"];
/// Number of consecutive equal operations on a file that are distinct fault points. A new segment
/// is zeroed in many pieces.
const MAX_REPEATS: usize = 6;

/// Phase of the process during an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// While the server serves.
    Serving,
    /// After SIGTERM.
    Stopping,
    /// Before the server listens.
    Starting,
}

/// Properties by which operations are grouped.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PointKind {
    /// Phase of the process.
    pub phase: Phase,
    /// First component of the path below the data directory.
    pub area: String,
    /// Name of the operation.
    pub operation: String,
}

/// An operation that can be made to fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// Sequence number since the start of the process.
    pub number: u64,
    /// Kind of operation.
    pub kind: PointKind,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Phase::Starting => "start",
            Phase::Serving => "serve",
            Phase::Stopping => "stop",
        })
    }
}

/// Parses the operations from the log of a server that traces them. Returns their number, and the
/// fault points.
#[must_use]
pub fn parse(log: &str, data_dir: &Path) -> (u64, Vec<Point>) {
    let (mut phase, mut count, mut points) = (Phase::Starting, 0, Vec::new());
    let (mut previous, mut repeats) = (String::new(), 0);
    for line in log.lines() {
        if line.contains(" serving address=") {
            phase = Phase::Serving;
        } else if line.contains("serve: stopping") {
            phase = Phase::Stopping;
        }
        let Some((_, rest)) = line.split_once(" an operation number=") else { continue };
        let Some((number, what)) = rest.split_once(" operation=") else { continue };
        let Some((operation, path)) = what.split_once(" path=") else { continue };
        let Ok(number) = number.parse() else { continue };
        count = number;
        repeats = if previous == what { repeats + 1 } else { 0 };
        what.clone_into(&mut previous);
        if READING.contains(&operation) || repeats >= MAX_REPEATS {
            continue;
        }
        let kind = PointKind { phase, area: area(Path::new(path), data_dir), operation: operation.to_owned() };
        points.push(Point { number, kind });
    }
    (count, points)
}

fn area(path: &Path, data_dir: &Path) -> String {
    let below = path.strip_prefix(data_dir).unwrap_or(path);
    let first = below.components().next().map(|part| part.as_os_str().to_string_lossy().into_owned());
    // A file to be replaced is first written as `NAME.tmp`.
    first.map_or_else(|| ".".to_owned(), |first| first.trim_end_matches(".tmp").to_owned())
}

/// Selects `count` points: of each kind in turn, spread evenly over the points of the kind.
#[must_use]
pub fn sample(points: &[Point], count: usize) -> Vec<Point> {
    let mut kinds: BTreeMap<&PointKind, Vec<&Point>> = BTreeMap::new();
    for point in points {
        kinds.entry(&point.kind).or_default().push(point);
    }
    let count = count.min(points.len());
    let mut quotas: BTreeMap<&PointKind, usize> = BTreeMap::new();
    let mut given = 0;
    while given < count {
        for (kind, of_kind) in &kinds {
            let quota = quotas.entry(kind).or_default();
            if *quota < of_kind.len() && given < count {
                *quota += 1;
                given += 1;
            }
        }
    }
    let chosen = |(kind, quota): (&&PointKind, &usize)| {
        let (of_kind, quota) = (&kinds[*kind], *quota);
        (0..quota).map(|place| of_kind[(2 * place + 1) * of_kind.len() / (2 * quota)].clone()).collect::<Vec<_>>()
    };
    quotas.iter().flat_map(chosen).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
T TRACE file_operations: an operation number=1 operation=Open path=/d/log/1.log
T TRACE file_operations: an operation number=2 operation=Read path=/d/log/1.log
T  INFO headcount::cli::serve: serving address=http://127.0.0.1:1 data_dir=/d
T TRACE file_operations: an operation number=3 operation=Write path=/d/FORMAT.tmp
T  INFO headcount::cli::serve: stopping
T TRACE file_operations: an operation number=4 operation=Sync path=/d
";

    #[test]
    fn operations_are_parsed_from_the_log() {
        let (count, points) = parse(LOG, Path::new("/d"));
        let shown: Vec<_> = points
            .iter()
            .map(|Point { number, kind }| format!("{number} {} {} {}", kind.phase, kind.area, kind.operation))
            .collect();
        assert_eq!((count, shown), (4, ["1 start log Open", "3 serve FORMAT Write", "4 stop . Sync"].map(str::to_owned).into()));
    }

    #[test]
    fn a_sample_covers_each_kind() {
        let point = |number: u64| Point {
            number,
            kind: PointKind {
                phase: Phase::Serving,
                area: "log".into(),
                operation: (if number < 10 { "Open" } else { "Write" }).into(),
            },
        };
        let points: Vec<_> = (1..=100).map(point).collect();
        let numbers: Vec<u64> = sample(&points, 5).iter().map(|point| point.number).collect();
        assert_eq!(numbers, [2, 5, 8, 32, 78]);
        assert_eq!(sample(&points, 1_000), points);
    }
}
