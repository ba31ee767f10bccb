//! Guards calls into sled: on damaged files sled 0.34 returns errors, but also panics. Both become
//! [`StoreError::Damaged`].

use std::any::Any;
use std::io::{self, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use super::super::error::StoreError;
use crate::files::{Operation, run_at};

/// Calls sled; its errors and panics become a [`StoreError`].
pub(super) fn guarded<T>(dir: &Path, doing: &str, call: impl FnOnce() -> sled::Result<T>) -> Result<T, StoreError> {
    let call = || run_at(Operation::Sled, dir, || Ok(catch_unwind(AssertUnwindSafe(call))));
    let refused = StoreError::io(format!("go on {doing} in sled"));
    match call() {
        Ok(Ok(Ok(answer))) => Ok(answer),
        // A short read is damage. A refusal is not: permissions, a full disk, the lock of another
        // process.
        Ok(Ok(Err(sled::Error::Io(source)))) if !is_damage(source.kind()) => Err(refused(source)),
        Ok(Ok(Err(error))) => Err(StoreError::damaged(format!("sled, {doing}: {error}"))),
        Ok(Err(panic)) => {
            let text = panic_text(&*panic);
            Err(refusal_in(text).map_or_else(|| StoreError::damaged(format!("sled panicked, {doing}: {text}")), refused))
        }
        Err(source) => Err(refused(source)),
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

/// Returns the operating system's error in a panic message of sled, if any, since sled unwraps some
/// I/O errors. The store may be intact.
fn refusal_in(text: &str) -> Option<io::Error> {
    let after = |marker: &str| text.split_once(marker).map(|(_, rest)| rest);
    let rest = after("Os { code: ").or_else(|| after("(os error "))?;
    let digits = rest.split(|character: char| !character.is_ascii_digit()).next()?;
    let error = io::Error::from_raw_os_error(digits.parse().ok()?);
    (!is_damage(error.kind())).then_some(error)
}

fn is_damage(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::UnexpectedEof | ErrorKind::InvalidData | ErrorKind::InvalidInput | ErrorKind::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_that_sled_panics_over_is_no_damage() {
        let too_many = io::Error::from_raw_os_error(24);
        for panic in [format!("called `Result::unwrap()` on an `Err` value: Io({too_many:?})"), format!("can't open: {too_many}")]
        {
            let failed = guarded::<()>(Path::new("."), "opening", || std::panic::panic_any(panic.clone())).unwrap_err();
            assert!(matches!(&failed, StoreError::Io { source, .. } if source.raw_os_error() == Some(24)), "{failed}");
        }
        let short = io::Error::from(ErrorKind::UnexpectedEof);
        for panic in ["index out of bounds".to_owned(), format!("{short:?}")] {
            assert!(
                guarded::<()>(Path::new("."), "opening", || std::panic::panic_any(panic.clone())).unwrap_err().is_damage(),
                "{panic}"
            );
        }
    }
}
