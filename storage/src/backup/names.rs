//! The allowed names of files in a backup: the parts of a data directory that belong in a backup.

/// Whether a backup may contain a file with this name. Only files that are useful in another data
/// directory: no locks, no visitor salts, no plain tokens, nothing outside the directory.
pub(super) fn is_allowed(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'=');
    let parts: Vec<&str> = name.split('/').collect();
    if parts.iter().any(|part| part.is_empty() || part.bytes().all(|byte| byte == b'.') || !part.bytes().all(is_plain)) {
        return false;
    }
    match parts[..] {
        ["FORMAT" | "dead-letters.ndjson"] | ["keys", "hash.key"] => true,
        [first, _, ..] => matches!(first, "log" | "control" | "imports" | "archive"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_the_layout_are_allowed() {
        for name in [
            "FORMAT",
            "keys/hash.key",
            "log/00000000000000000001.seg",
            "log/floor",
            "control/snapshot-00000000000000000256.json",
            "control/log/00000000000000000001.seg",
            "archive/project=proj_1/month=2026-11/00000000000000000001-00000000000000000009.parquet",
            "dead-letters.ndjson",
            "imports/17.ndjson",
        ] {
            assert!(is_allowed(name), "{name}");
        }
        for name in [
            "",
            "/etc/passwd",
            "log",
            "log/",
            "log//x",
            "log/../../x",
            "../log/x",
            "log/./x",
            "log/...",
            "FORMAT/x",
            "keys/salts",
            "credentials.json",
            "operator-token",
            "LOCK",
            "starts",
            "store/db",
            "log/a b",
            "log/a\nb",
            "log/a\\b",
            "manifest.json",
            "SHA256SUMS",
        ] {
            assert!(!is_allowed(name), "{name}");
        }
    }
}
