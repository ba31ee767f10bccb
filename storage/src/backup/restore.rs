//! Restores a backup to a data directory.

use std::io::ErrorKind;
use std::path::Path;

use super::complete::Backup;
use super::error::BackupError;
use super::manifest::{BackupManifest, LAYOUT_NAME};
use crate::files::{self, File, create_private_dir, sync_dir};
use crate::format::{Format, FormatError, RESTORING_NAME};
use crate::lock::{DirLock, LOCK_NAME};

/// Restores `backup` into `data_dir`, which must be empty or missing. Checks every file of the
/// backup before it writes anything.
///
/// The description of the data directory is written last, with a new incarnation. Until then a
/// marker prevents its use as a data directory. After an error, the written files are removed.
///
/// # Errors
/// [`BackupError::NotEmpty`], [`BackupError::Damaged`], [`BackupError::Layout`] if a newer version
/// wrote it, [`BackupError::Lock`], and [`BackupError::Io`].
pub fn restore(backup: &Backup, data_dir: &Path) -> Result<(), BackupError> {
    restore_with(backup, data_dir, |_| Ok(()))
}

/// Like [`restore`], but calls `prepare` with the directory when all files except its description
/// are there. The changes of `prepare` are durable before the directory can be used. If it fails,
/// all written files are removed.
///
/// # Errors
/// The errors of [`restore`] and of `prepare`.
pub fn restore_with<T, E: From<BackupError>>(
    backup: &Backup,
    data_dir: &Path,
    prepare: impl FnOnce(&Path) -> Result<T, E>,
) -> Result<T, E> {
    refuse_unless_empty(data_dir)?;
    backup.check()?;
    let format = new_life(backup)?;
    // This may create the directory, so all checks come before it.
    let _lock = DirLock::acquire(data_dir).map_err(BackupError::from)?;
    refuse_unless_empty(data_dir)?;
    let written = write(backup, data_dir, format, prepare);
    if written.is_err() {
        discard(backup.manifest(), data_dir);
    }
    written
}

fn refuse_unless_empty(data_dir: &Path) -> Result<(), BackupError> {
    let entries = match files::list(data_dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(BackupError::io("list", data_dir)(error)),
    };
    if data_dir.join(RESTORING_NAME).exists() && !data_dir.join(LAYOUT_NAME).exists() {
        return Err(FormatError::Unfinished { dir: data_dir.to_owned() }.into());
    }
    if entries.iter().all(|path| path.file_name().is_some_and(|name| name == LOCK_NAME)) {
        return Ok(());
    }
    Err(BackupError::NotEmpty { dir: data_dir.to_owned() })
}

/// The description of the data directory in the backup, with a new incarnation.
fn new_life(backup: &Backup) -> Result<Format, BackupError> {
    let path = backup.path(LAYOUT_NAME);
    let text = files::read(&path).map_err(BackupError::io("read", &path))?;
    Ok(Format::restored(&String::from_utf8_lossy(&text), &path)?)
}

fn write<T, E: From<BackupError>>(
    backup: &Backup,
    data_dir: &Path,
    format: Format,
    prepare: impl FnOnce(&Path) -> Result<T, E>,
) -> Result<T, E> {
    let marker = data_dir.join(RESTORING_NAME);
    File::create(&marker)
        .and_then(|file| file.sync_all())
        .and_then(|()| sync_dir(data_dir))
        .map_err(BackupError::io("create", &marker))?;
    for file in backup.manifest().files.iter().filter(|file| file.name != LAYOUT_NAME) {
        let path = data_dir.join(&file.name);
        let parent = path.parent().unwrap_or(data_dir);
        create_private_dir(parent).map_err(BackupError::io("create", parent))?;
        let copy = File::create(&path).map_err(BackupError::io("create", &path))?;
        let mut offset = 0;
        backup.read(file, |part| {
            copy.write_all_at(part, offset).map_err(BackupError::io("write", &path))?;
            offset += part.len() as u64;
            Ok(())
        })?;
        copy.sync_all().map_err(BackupError::io("sync", &path))?;
    }
    let prepared = prepare(data_dir)?;
    sync_all_dirs(data_dir)?;
    format.write(data_dir).map_err(BackupError::from)?;
    // After a crash here, the rest of the marker is ignored.
    files::remove_file(&marker).and_then(|()| sync_dir(data_dir)).map_err(BackupError::io("remove", &marker))?;
    Ok(prepared)
}

/// Makes the names in all directories durable.
fn sync_all_dirs(dir: &Path) -> Result<(), BackupError> {
    for path in files::list(dir).map_err(BackupError::io("list", dir))? {
        if path.is_dir() {
            sync_all_dirs(&path)?;
        }
    }
    sync_dir(dir).map_err(BackupError::io("sync", dir))
}

/// Removes the files of a failed attempt, the description first and the marker last. Logs errors:
/// the marker then stays.
fn discard(manifest: &BackupManifest, data_dir: &Path) {
    let mut entries: Vec<&str> = vec![LAYOUT_NAME, "FORMAT.tmp"];
    entries.extend(manifest.files.iter().filter_map(|file| file.name.split('/').next()));
    entries.dedup();
    entries.push(RESTORING_NAME);
    for entry in entries {
        let path = data_dir.join(entry);
        let removed = if path.is_dir() { files::remove_dir_all(&path) } else { files::remove_if_there(&path) };
        if let Err(error) = removed {
            tracing::warn!(path = %path.display(), %error, "could not remove a part of a failed restore: remove it before another attempt");
            return;
        }
    }
}
