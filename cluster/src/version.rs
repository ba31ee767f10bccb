//! The supported versions of the broker.

/// The earliest supported patch of each minor version. Earlier ones lose messages or give wrong
/// answers (nats-server #6041, #5848, #7460, #8057, #8370, #8469).
const ACCEPTED: [((u64, u64), u64); 4] = [((2, 10), 27), ((2, 11), 12), ((2, 12), 8), ((2, 14), 4)];
/// The last minor version of the list. All later ones are supported.
const LAST: (u64, u64) = (2, 14);

/// The reason why a version is not supported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// The version does not have the form `2.10.27`.
    #[error("its version is {0:?}, which is not that of a release")]
    Unknown(String),
    /// The version is too old, or has known defects.
    #[error("its version is {0}: 2.10.27, 2.11.12, 2.12.8 and 2.14.4 are accepted, later patches of each, and 2.15 and later")]
    Refused(String),
}

/// Checks whether a broker of this version may carry a cluster.
///
/// # Errors
/// Returns a [`VersionError`].
pub(crate) fn check(version: &str) -> Result<(), VersionError> {
    let unknown = || VersionError::Unknown(version.to_owned());
    let numbers: Vec<u64> = version.split('.').map(|part| part.parse().ok()).collect::<Option<_>>().ok_or_else(unknown)?;
    let [major, minor, patch] = numbers[..] else { return Err(unknown()) };
    let least = ACCEPTED.iter().find(|(of, _)| *of == (major, minor)).map(|(_, least)| *least);
    let accepted = least.map_or((major, minor) > LAST, |least| patch >= least);
    if accepted { Ok(()) } else { Err(VersionError::Refused(version.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_without_known_defects_are_accepted() {
        for version in ["2.10.27", "2.10.31", "2.11.12", "2.12.8", "2.14.4", "2.15.0", "2.15.1", "3.0.0"] {
            assert_eq!(check(version), Ok(()), "{version}");
        }
        for version in ["2.9.10", "2.10.26", "2.11.11", "2.12.7", "2.13.5", "2.14.3", "1.99.99"] {
            assert_eq!(check(version), Err(VersionError::Refused(version.to_owned())), "{version}");
        }
        for version in ["", "2.10", "2.10.27.1", "2.15.0-preview.1", "2.10.x", "-2.10.27"] {
            assert_eq!(check(version), Err(VersionError::Unknown(version.to_owned())), "{version}");
        }
    }
}
