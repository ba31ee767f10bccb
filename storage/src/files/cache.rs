//! Files that are opened on demand, with a limit on the number of open files.
//!
//! The tables of the store and of the index of external ids share one limit. A file that was not
//! read for a while is closed when another one needs its place, and reopened at its next read.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::Mutex;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::process::{Resource, getrlimit};

use super::file::File;
use super::operation::Operation;
use super::switch::run_at;

/// The limit as a fraction of the process's limit on open files.
const SHARE_OF_LIMIT: u64 = 4;
const FEWEST: u64 = 16;
const MOST: u64 = 1_024;

/// An open directory. Operations apply to it even if another directory has taken its path.
#[derive(Debug)]
pub(crate) struct Dir {
    fd: OwnedFd,
    /// The path of the directory when it was opened.
    pub(crate) path: PathBuf,
}

impl Dir {
    /// Opens the directory at `path`.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = run_at(Operation::Open, path, || Ok(rustix::fs::open(path, flags, Mode::empty())?))?;
        Ok(Self { fd, path: path.to_owned() })
    }

    /// Whether the directory is still at its path.
    pub(crate) fn is_in_place(&self) -> bool {
        let (Ok(held), Ok(there)) = (rustix::fs::fstat(&self.fd), rustix::fs::stat(&self.path)) else { return false };
        (held.st_dev, held.st_ino) == (there.st_dev, there.st_ino)
    }

    fn open_file(&self, name: &str) -> io::Result<File> {
        let path = self.path.join(name);
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let open = || Ok(rustix::fs::openat(&self.fd, name, flags, Mode::empty())?.into());
        run_at(Operation::Open, &path, open).map(|file| File::from_std(file, &path))
    }

    fn remove_file(&self, name: &str) -> io::Result<()> {
        run_at(Operation::Remove, &self.path.join(name), || Ok(rustix::fs::unlinkat(&self.fd, name, AtFlags::empty())?))
    }
}

/// Limits how many files are open.
#[derive(Debug)]
pub(crate) struct OpenFiles {
    limit: usize,
    /// In the order in which they are considered for closing.
    open: Mutex<std::collections::VecDeque<Weak<OpenSlot>>>,
}

/// The handle of a file, while it is open.
#[derive(Debug, Default)]
struct OpenSlot {
    file: Mutex<Option<Arc<File>>>,
    used: AtomicBool,
}

impl OpenSlot {}

impl OpenFiles {
    /// Creates a limit of `limit` files, in addition to files that are being read.
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, open: Mutex::default() })
    }

    /// The limit of this process: a quarter of the files that it may open.
    pub(crate) fn of_process() -> Arc<Self> {
        static SHARED: LazyLock<Arc<OpenFiles>> = LazyLock::new(|| {
            let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
            OpenFiles::new(usize::try_from((allowed / SHARE_OF_LIMIT).clamp(FEWEST, MOST)).unwrap_or(usize::MAX))
        });
        Arc::clone(&SHARED)
    }

    /// Records that a file was opened, and closes others if there are too many.
    fn admit(&self, place: &Arc<OpenSlot>) {
        let mut open = self.open.lock();
        open.push_back(Arc::downgrade(place));
        // A file that was used since the last pass gets a second chance.
        for _ in 0..2 * open.len() {
            if open.len() <= self.limit {
                return;
            }
            let Some(next) = open.pop_front() else { return };
            let Some(candidate) = next.upgrade() else { continue };
            if candidate.used.swap(false, Ordering::Relaxed) {
                open.push_back(next);
                continue;
            }
            match candidate.file.try_lock() {
                Some(mut file) => *file = None,
                None => open.push_back(next),
            }
        }
    }

    /// The number of open files.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.open.lock().iter().filter(|place| place.strong_count() > 0).count()
    }
}

/// A file that is open only while it is in use.
#[derive(Debug)]
pub(crate) struct CachedFile {
    dir: Arc<Dir>,
    /// The name of the file.
    pub(crate) name: String,
    open_files: Arc<OpenFiles>,
    place: Arc<OpenSlot>,
    remove_at_end: AtomicBool,
}

impl CachedFile {
    /// The file `name` in `dir`. It is opened by the first read.
    pub(crate) fn new(dir: &Arc<Dir>, name: String, open_files: &Arc<OpenFiles>) -> Self {
        let remove_at_end = AtomicBool::new(false);
        Self { dir: Arc::clone(dir), name, open_files: Arc::clone(open_files), place: Arc::default(), remove_at_end }
    }

    fn open(&self) -> io::Result<Arc<File>> {
        self.place.used.store(true, Ordering::Relaxed);
        if let Some(file) = &*self.place.file.lock() {
            return Ok(Arc::clone(file));
        }
        let opened = Arc::new(self.dir.open_file(&self.name)?);
        let file = {
            let mut file = self.place.file.lock();
            if let Some(file) = &*file {
                return Ok(Arc::clone(file));
            }
            Arc::clone(file.insert(opened))
        };
        self.open_files.admit(&self.place);
        Ok(file)
    }

    /// Fills `bytes` from `offset`.
    pub(crate) fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.open()?.read_exact_at(bytes, offset)
    }

    /// The length of the file.
    pub(crate) fn len(&self) -> io::Result<u64> {
        self.open()?.len()
    }

    /// Whether the file is removed when this is dropped.
    pub(crate) fn remove_at_end(&self, removed: bool) {
        self.remove_at_end.store(removed, Ordering::Relaxed);
    }
}

impl Drop for CachedFile {
    fn drop(&mut self) {
        if self.remove_at_end.load(Ordering::Relaxed)
            && let Err(error) = self.dir.remove_file(&self.name)
        {
            // Files that no manifest names are removed at the next start.
            tracing::debug!(file = %self.name, %error, "could not remove a replaced file");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_files_are_open_and_all_can_be_read() {
        let place = tempfile::tempdir().unwrap();
        let (dir, open_files) = (Arc::new(Dir::open(place.path()).unwrap()), OpenFiles::new(4));
        let files: Vec<CachedFile> = (0..50_u8)
            .map(|number| {
                std::fs::write(place.path().join(number.to_string()), [number]).unwrap();
                CachedFile::new(&dir, number.to_string(), &open_files)
            })
            .collect();
        for round in 0..3 {
            for (number, file) in (0..).zip(&files) {
                let mut byte = [99];
                file.read_exact_at(&mut byte, 0).unwrap();
                assert_eq!(byte, [number], "round {round}");
                assert!(open_files.count() <= 4, "{}", open_files.count());
            }
        }
        drop(files);
        assert_eq!(open_files.count(), 0);
    }

    #[test]
    fn a_file_goes_with_its_last_reader_and_not_from_another_directory() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("dir");
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("file"), "old").unwrap();
        let dir = Arc::new(Dir::open(&path).unwrap());
        let file = CachedFile::new(&dir, "file".into(), &OpenFiles::new(4));
        file.remove_at_end(true);
        assert!(dir.is_in_place() && file.len().unwrap() == 3);
        let aside = place.path().join("aside");
        std::fs::rename(&path, &aside).unwrap();
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("file"), "new").unwrap();
        assert!(!dir.is_in_place());
        drop(file);
        assert!(path.join("file").exists());
        assert!(!aside.join("file").exists());
    }
}
