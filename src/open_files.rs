//! How many files and connections the process may have open: shells and services usually allow 1,024 of them until more is
//! asked for, and each partition alone has several files open.

use rustix::process::{Resource, getrlimit, setrlimit};

use crate::cli::Failure;

/// How many connections may be open, over all workers, where the operating system allows as many.
const MOST_CONNECTIONS: u64 = 25_000;
/// And where it allows next to none.
const LEAST_CONNECTIONS: u64 = 64;
/// What is left to log, indexes and store. With less they close files and open them again.
const FILES: u64 = 1_024;
/// With fewer than these nothing works: the runs of store and index take a quarter, connections [`LEAST_CONNECTIONS`], the rest
/// is for log, store, journals, and what each thread needs.
const LEAST_FILES: u64 = 256;

/// Asks for as many as are needed, or as many as there may be.
///
/// # Errors
/// The process may not have as many open as it needs at least.
pub(crate) fn raise() -> Result<(), Failure> {
    let mut limit = getrlimit(Resource::Nofile);
    let wanted = MOST_CONNECTIONS + FILES;
    if limit.current.is_some_and(|current| current < wanted) {
        limit.current = Some(limit.maximum.map_or(wanted, |maximum| maximum.min(wanted)));
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::warn!(%error, "the limit of open files stays as it is");
        }
    }
    let allowed = allowed();
    if allowed < LEAST_FILES {
        return Err(Failure(format!(
            "the limit of open files is {allowed}, and at least {LEAST_FILES} are needed: raise it with `ulimit -n {wanted}`, or \
             LimitNOFILE={wanted} in the service's unit",
            wanted = 2 * FILES
        )));
    }
    if allowed < 2 * FILES {
        tracing::warn!(allowed, "few files may be open: `ulimit -n` (LimitNOFILE) should be {} or more", 2 * FILES);
    }
    Ok(())
}

/// How many connections may be open, so that log and store can always open their files.
pub(crate) fn connections() -> usize {
    let connections = allowed().saturating_sub(FILES).clamp(LEAST_CONNECTIONS, MOST_CONNECTIONS);
    usize::try_from(connections).unwrap_or(usize::MAX)
}

fn allowed() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_low_limit_is_raised_and_the_store_has_its_part() {
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = Some(512);
        setrlimit(Resource::Nofile, limit).unwrap();
        assert_eq!(connections() as u64, LEAST_CONNECTIONS);
        raise().unwrap();
        let most = limit.maximum.unwrap_or(u64::MAX);
        assert_eq!(allowed(), most.min(MOST_CONNECTIONS + FILES));
        assert!(connections() as u64 <= most.saturating_sub(FILES).max(LEAST_CONNECTIONS));
    }
}
