//! The file `FORMAT` of a data directory: the version of its layout, and its incarnation.
//!
//! ```text
//! headcount data directory
//! layout = 1
//! incarnation = 5f0c…
//! ```
//!
//! It is read before anything else in the directory. A layout that is newer than the program is
//! refused. An older one is migrated by the steps in `MIGRATIONS`, one version at a time; the file
//! is rewritten after each.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::files::{self, PRIVATE_FILE, create_private_dir, write_atomically};
use crate::random::fill_random;

/// The layout that this program writes.
pub const LAYOUT_VERSION: u32 = 1;

/// The file with the id of a node, in a node's data directory.
pub const NODE_NAME: &str = "node";
pub(crate) const FILE_NAME: &str = "FORMAT";
/// Marks a directory without [`FILE_NAME`] as the target of an unfinished restore.
pub(crate) const RESTORING_NAME: &str = "RESTORING";
/// Marks an unfinished reindex. It contains the organization and the timezone.
pub const REINDEXING_NAME: &str = "REINDEXING";
const TITLE: &str = "headcount data directory";

/// A step from one layout to the next. It is repeated after a crash, so it must be idempotent.
type Migration = fn(&Path) -> io::Result<()>;

/// The step at index `n` brings a directory from layout `n + 1` to layout `n + 2`.
const MIGRATIONS: [Migration; LAYOUT_VERSION as usize - 1] = [];

/// The incarnation of a data directory. It changes at each creation, restore and rebuild, so that
/// data derived in an earlier incarnation (an index, a client's `ETag`) is not taken for current.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Incarnation(u128);

impl Incarnation {
    /// Draws a new incarnation from the operating system's random numbers.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn random() -> io::Result<Self> {
        let mut bytes = [0; 16];
        fill_random(&mut bytes)?;
        Ok(Self(u128::from_le_bytes(bytes)))
    }

    /// Creates the incarnation with this number.
    pub const fn from_number(number: u128) -> Self {
        Self(number)
    }

    /// The number of the incarnation.
    pub const fn number(self) -> u128 {
        self.0
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Incarnation({self})")
    }
}

/// An error of opening a data directory.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The directory belongs to a node of a cluster.
    #[error("{} is the data directory of a node: its events are on the brokers of its cluster; run `headcount serve` with the setting `cluster`", dir.display())]
    OfNode {
        /// The directory.
        dir: PathBuf,
    },
    /// A newer version of the program wrote it.
    #[error("{} has layout {found}, written by a newer version; this version reads layouts up to {LAYOUT_VERSION}", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its layout.
        found: u32,
    },
    /// The file is not a valid `FORMAT` file.
    #[error("{} does not describe a data directory: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: &'static str,
    },
    /// The directory has files, but no `FORMAT`.
    #[error("{} is not empty and has no {FILE_NAME} file: not a data directory", dir.display())]
    NotOurs {
        /// The directory.
        dir: PathBuf,
    },
    /// A restore into the directory was interrupted.
    #[error("{} has only a part of a backup, because a restore was interrupted: empty the directory and restore again", dir.display())]
    Unfinished {
        /// The directory.
        dir: PathBuf,
    },
    /// The directory has another incarnation than requested.
    #[error("{} belongs to another installation: its incarnation is {found}, not {wanted}; use an empty directory", dir.display())]
    OtherIncarnation {
        /// The directory.
        dir: PathBuf,
        /// Its incarnation.
        found: Incarnation,
        /// The requested incarnation.
        wanted: Incarnation,
    },
    /// Days are in two timezones, because a reindex was interrupted.
    #[error("a reindex of {} was interrupted: run `headcount reindex` again", dir.display())]
    Reindexing {
        /// The directory.
        dir: PathBuf,
    },
    /// The operating system returned an error.
    #[error("can't access the description of the data directory, {}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

/// The description of a data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// The version of the layout; [`LAYOUT_VERSION`] once opened.
    pub layout: u32,
    /// The incarnation of the directory.
    pub incarnation: Incarnation,
}

impl Format {
    /// Reads the `FORMAT` file of `dir` and migrates an older layout. In a new directory, which
    /// contains at most `LOCK`, writes the file.
    ///
    /// # Errors
    /// Any [`FormatError`].
    pub fn open(dir: &Path) -> Result<Self, FormatError> {
        if dir.join(REINDEXING_NAME).exists() {
            return Err(FormatError::Reindexing { dir: dir.to_owned() });
        }
        Self::open_for_reindex(dir)
    }

    /// Like [`Format::open`], for a directory with this incarnation, which several machines share.
    /// A new directory gets this incarnation, and may already have the folder `keys` of another
    /// directory.
    ///
    /// # Errors
    /// Any [`FormatError`]: [`FormatError::OtherIncarnation`] if the directory has another one.
    pub fn open_as(dir: &Path, incarnation: Incarnation) -> Result<Self, FormatError> {
        if !Self::is_in(dir) {
            Self::create(dir, &["keys"], || Ok(incarnation))?;
        }
        let format = Self::read(dir)?;
        if format.incarnation == incarnation {
            return Ok(format);
        }
        Err(FormatError::OtherIncarnation { dir: dir.to_owned(), found: format.incarnation, wanted: incarnation })
    }

    /// Whether `dir` has a `FORMAT` file.
    pub fn is_in(dir: &Path) -> bool {
        dir.join(FILE_NAME).exists()
    }

    /// Like [`Format::open`], but also opens a directory with an unfinished reindex.
    ///
    /// # Errors
    /// Any [`FormatError`].
    pub fn open_for_reindex(dir: &Path) -> Result<Self, FormatError> {
        if dir.join(NODE_NAME).exists() {
            return Err(FormatError::OfNode { dir: dir.to_owned() });
        }
        Self::read(dir)
    }

    fn read(dir: &Path) -> Result<Self, FormatError> {
        let path = dir.join(FILE_NAME);
        let failed = |source| FormatError::Io { path: path.clone(), source };
        create_private_dir(dir).map_err(failed)?;
        let format = match files::read_to_string(&path) {
            Ok(text) => Self::parse(&text).map_err(|reason| FormatError::Unreadable { path: path.clone(), reason })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Self::create(dir, &[], Incarnation::random),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(FormatError::Unreadable { path, reason: "it is not text" });
            }
            Err(error) => return Err(failed(error)),
        };
        if format.layout > LAYOUT_VERSION {
            return Err(FormatError::Newer { path, found: format.layout });
        }
        format.migrate(dir, &MIGRATIONS)
    }

    /// Reads the `FORMAT` file of a backup at `path`, and draws a new incarnation for the restored
    /// directory.
    ///
    /// # Errors
    /// [`FormatError::Newer`], [`FormatError::Unreadable`], and [`FormatError::Io`] without random
    /// numbers.
    pub(crate) fn restored(text: &str, path: &Path) -> Result<Self, FormatError> {
        let path = path.to_owned();
        let format = Self::parse(text).map_err(|reason| FormatError::Unreadable { path: path.clone(), reason })?;
        if format.layout > LAYOUT_VERSION {
            return Err(FormatError::Newer { path, found: format.layout });
        }
        let incarnation = Incarnation::random().map_err(|source| FormatError::Io { path, source })?;
        Ok(Self { incarnation, ..format })
    }

    /// Writes a new incarnation, for a rebuild.
    ///
    /// # Errors
    /// [`FormatError::Io`].
    pub fn renew(self, dir: &Path) -> Result<Self, FormatError> {
        let failed = |source| FormatError::Io { path: dir.join(FILE_NAME), source };
        let format = Self { incarnation: Incarnation::random().map_err(failed)?, ..self };
        format.write(dir)?;
        Ok(format)
    }

    /// Writes the file in a new directory, with the incarnation that `choose` returns. The
    /// directory may contain the entries in `brought`.
    fn create(dir: &Path, brought: &[&str], choose: impl FnOnce() -> io::Result<Incarnation>) -> Result<Self, FormatError> {
        let failed = |source| FormatError::Io { path: dir.to_owned(), source };
        create_private_dir(dir).map_err(failed)?;
        if dir.join(RESTORING_NAME).exists() {
            return Err(FormatError::Unfinished { dir: dir.to_owned() });
        }
        for entry in fs::read_dir(dir).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            if name != "LOCK" && name != "FORMAT.tmp" && brought.iter().all(|brought| name != *brought) {
                return Err(FormatError::NotOurs { dir: dir.to_owned() });
            }
        }
        let format = Self { layout: LAYOUT_VERSION, incarnation: choose().map_err(failed)? };
        format.write(dir)?;
        Ok(format)
    }

    fn migrate(mut self, dir: &Path, migrations: &[Migration]) -> Result<Self, FormatError> {
        for step in migrations.iter().skip(self.layout.saturating_sub(1) as usize) {
            step(dir).map_err(|source| FormatError::Io { path: dir.to_owned(), source })?;
            self.layout += 1;
            self.write(dir)?;
        }
        Ok(self)
    }

    /// Writes the `FORMAT` file of `dir`.
    pub(crate) fn write(&self, dir: &Path) -> Result<(), FormatError> {
        let path = dir.join(FILE_NAME);
        let Self { layout, incarnation } = self;
        let text = format!("{TITLE}\nlayout = {layout}\nincarnation = {incarnation}\n");
        write_atomically(&path, text.as_bytes(), PRIVATE_FILE).map_err(|source| FormatError::Io { path, source })
    }

    fn parse(text: &str) -> Result<Self, &'static str> {
        let mut lines = text.lines();
        if lines.next() != Some(TITLE) {
            return Err("the first line is not the title");
        }
        // Parse the layout first, since a newer one may have other lines.
        let layout = lines.next().and_then(|line| line.strip_prefix("layout = "));
        let layout = layout.and_then(|layout| layout.parse().ok()).filter(|layout| *layout > 0);
        let layout = layout.ok_or("the second line has no layout")?;
        if layout > LAYOUT_VERSION {
            return Ok(Self { layout, incarnation: Incarnation(0) });
        }
        let incarnation = lines.next().and_then(|line| line.strip_prefix("incarnation = "));
        let incarnation = incarnation.filter(|hex| hex.len() == 32).and_then(|hex| u128::from_str_radix(hex, 16).ok());
        let incarnation = incarnation.ok_or("the third line has no incarnation")?;
        match lines.next() {
            None if text.ends_with('\n') => Ok(Self { layout, incarnation: Incarnation(incarnation) }),
            _ => Err("it does not end after the third line"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_directory_keeps_its_incarnation_until_it_is_renewed() {
        let dir = tempfile::tempdir().unwrap();
        let format = Format::open(dir.path()).unwrap();
        assert_eq!(Format::open(dir.path()).unwrap(), format);
        let renewed = format.renew(dir.path()).unwrap();
        assert_ne!(renewed.incarnation, format.incarnation);
        assert_eq!(Format::open(dir.path()).unwrap(), renewed);
    }

    #[test]
    fn a_directory_gets_the_incarnation_of_its_cluster_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let (own, other) = (Incarnation::from_number(5), Incarnation::from_number(6));
        assert!(!Format::is_in(dir.path()));
        fs::create_dir(dir.path().join("keys")).unwrap();
        assert!(matches!(Format::open(dir.path()), Err(FormatError::NotOurs { .. })));
        assert_eq!(Format::open_as(dir.path(), own).unwrap().incarnation, own);
        assert!(Format::is_in(dir.path()));
        assert_eq!(Format::open_as(dir.path(), own).unwrap(), Format::open(dir.path()).unwrap());
        let refused = Format::open_as(dir.path(), other).unwrap_err();
        assert!(
            matches!(refused, FormatError::OtherIncarnation { found, wanted, .. } if (found, wanted) == (own, other)),
            "{refused}"
        );
        assert_eq!(Format::open(dir.path()).unwrap().incarnation, own);
        // Only a node opens a node's directory.
        fs::write(dir.path().join(NODE_NAME), "").unwrap();
        assert!(matches!(Format::open(dir.path()), Err(FormatError::OfNode { .. })));
        assert!(matches!(Format::open_for_reindex(dir.path()), Err(FormatError::OfNode { .. })));
        assert_eq!(Format::open_as(dir.path(), own).unwrap().incarnation, own);
    }

    #[test]
    fn a_newer_layout_is_refused_whatever_else_it_says() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("FORMAT"), format!("{TITLE}\nlayout = 2\nshape = round\n")).unwrap();
        let refused = Format::open(dir.path()).unwrap_err();
        assert!(refused.to_string().contains("written by a newer version"), "{refused}");
    }

    #[test]
    fn what_is_not_ours_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("thesis.txt"), "").unwrap();
        assert!(matches!(Format::open(dir.path()), Err(FormatError::NotOurs { .. })));
        for text in [
            "",
            "something else\n",
            "headcount data directory\nlayout = 0\n",
            "headcount data directory\nlayout = 1\nincarnation = 12\n",
        ] {
            fs::write(dir.path().join("FORMAT"), text).unwrap();
            assert!(matches!(Format::open(dir.path()), Err(FormatError::Unreadable { .. })), "{text:?}");
        }
    }

    #[test]
    fn an_older_layout_is_brought_up_step_by_step() {
        let dir = tempfile::tempdir().unwrap();
        let steps: [Migration; 2] =
            [|dir| fs::write(dir.join("second"), ""), |dir| fs::rename(dir.join("second"), dir.join("third"))];
        let format = Format { layout: 1, incarnation: Incarnation::from_number(5) };
        assert_eq!(format.migrate(dir.path(), &steps).unwrap().layout, 3);
        assert!(dir.path().join("third").exists());
        let written = fs::read_to_string(dir.path().join("FORMAT")).unwrap();
        assert_eq!(written, format!("{TITLE}\nlayout = 3\nincarnation = {:032x}\n", 5));
    }
}
