//! Placeholders that programs send as the id of an unknown user.

use crate::text::trimmed;

/// The placeholders, in lower case.
const PLACEHOLDERS: [&str; 21] = [
    "undefined",
    "null",
    "nil",
    "none",
    "nan",
    "[object object]",
    "anonymous",
    "guest",
    "unknown",
    "(not set)",
    "not set",
    "not_authenticated",
    "n/a",
    "true",
    "false",
    "0",
    "id",
    "user_id",
    "distinct_id",
    "distinctid",
    "00000000-0000-0000-0000-000000000000",
];

/// Whether a text is a placeholder for an unknown id. Otherwise all people with it would become one
/// person for ever.
#[must_use]
pub(crate) fn is_placeholder(id: &str) -> bool {
    let id = trimmed(id);
    PLACEHOLDERS.iter().any(|placeholder| id.eq_ignore_ascii_case(placeholder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_of_any_case_are_no_ids() {
        for id in ["undefined", " Undefined\n", "NULL", "[object Object]", "(Not Set)", "0", "N/A", PLACEHOLDERS[20]] {
            assert!(is_placeholder(id), "{id}");
        }
        for id in ["", "00", "u0", "undefined1", "nobody", "[object]", "ada", "00000000-0000-0000-0000-000000000001"] {
            assert!(!is_placeholder(id), "{id}");
        }
    }
}
