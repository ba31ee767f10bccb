//! The operations on files of a run without faults, and which of them are made to fail.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// Operations that change nothing: a read that fails is no business of this campaign.
const READING: [&str; 2] = ["Read", "List"];
/// So many of the same operations in a row on the same file are told apart: a new segment is filled with zeroes piece by piece.
const ALIKE_IN_A_ROW: usize = 6;

/// When an operation is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// While it serves.
    Serving,
    /// After SIGTERM.
    Stopping,
    /// Before the server listens.
    Starting,
}

/// What operations have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// When it is done.
    pub phase: Phase,
    /// The first part of its path below the data directory.
    pub area: String,
    /// What is done.
    pub operation: String,
}

/// An operation that can be made to fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// Its number, counted from the start of the process.
    pub number: u64,
    /// What it is.
    pub kind: Kind,
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

/// Reads the operations from what a server logged that traces them. Returns how many there were, and those that can be made
/// to fail.
#[must_use]
pub fn read(log: &str, data_dir: &Path) -> (u64, Vec<Point>) {
    let (mut phase, mut count, mut points) = (Phase::Starting, 0, Vec::new());
    let (mut before, mut alike) = (String::new(), 0);
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
        alike = if before == what { alike + 1 } else { 0 };
        what.clone_into(&mut before);
        if READING.contains(&operation) || alike >= ALIKE_IN_A_ROW {
            continue;
        }
        let kind = Kind { phase, area: area(Path::new(path), data_dir), operation: operation.to_owned() };
        points.push(Point { number, kind });
    }
    (count, points)
}

fn area(path: &Path, data_dir: &Path) -> String {
    let below = path.strip_prefix(data_dir).unwrap_or(path);
    let first = below.components().next().map(|part| part.as_os_str().to_string_lossy().into_owned());
    // What replaces a file has its name at first.
    first.map_or_else(|| ".".to_owned(), |first| first.trim_end_matches(".tmp").to_owned())
}

/// So many of the points: of each kind in turn, spread evenly over those of its kind.
#[must_use]
pub fn spread(points: &[Point], count: usize) -> Vec<Point> {
    let mut kinds: BTreeMap<&Kind, Vec<&Point>> = BTreeMap::new();
    for point in points {
        kinds.entry(&point.kind).or_default().push(point);
    }
    let count = count.min(points.len());
    let mut quotas: BTreeMap<&Kind, usize> = BTreeMap::new();
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
    let chosen = |(kind, quota): (&&Kind, &usize)| {
        let (of_kind, quota) = (&kinds[*kind], *quota);
        (0..quota).map(|place| of_kind[(2 * place + 1) * of_kind.len() / (2 * quota)].clone()).collect::<Vec<_>>()
    };
    quotas.iter().flat_map(chosen).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
T TRACE headcount_storage::files::switch: an operation number=1 operation=Open path=/d/log/1.log
T TRACE headcount_storage::files::switch: an operation number=2 operation=Read path=/d/log/1.log
T  INFO headcount::cli::serve: serving address=http://127.0.0.1:1 data_dir=/d
T TRACE headcount_storage::files::switch: an operation number=3 operation=Write path=/d/FORMAT.tmp
T  INFO headcount::cli::serve: stopping
T TRACE headcount_storage::files::switch: an operation number=4 operation=Sync path=/d
";

    #[test]
    fn operations_are_read_from_the_log() {
        let (count, points) = read(LOG, Path::new("/d"));
        let shown: Vec<_> = points
            .iter()
            .map(|Point { number, kind }| format!("{number} {} {} {}", kind.phase, kind.area, kind.operation))
            .collect();
        assert_eq!((count, shown), (4, ["1 start log Open", "3 serve FORMAT Write", "4 stop . Sync"].map(str::to_owned).into()));
    }

    #[test]
    fn a_sample_has_some_of_each_kind() {
        let point = |number: u64| Point {
            number,
            kind: Kind {
                phase: Phase::Serving,
                area: "log".into(),
                operation: (if number < 10 { "Open" } else { "Write" }).into(),
            },
        };
        let points: Vec<_> = (1..=100).map(point).collect();
        let numbers: Vec<u64> = spread(&points, 5).iter().map(|point| point.number).collect();
        assert_eq!(numbers, [2, 5, 8, 32, 78]);
        assert_eq!(spread(&points, 1_000), points);
    }
}
