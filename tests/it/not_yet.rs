//! Paths of the contract that have no endpoint yet. What is asked of them is left out of cases and
//! histories.
//!
//! The list can only shrink: it fails a test as soon as one of these paths answers.

use crate::client::Call;
use crate::tenant::Tenant;

/// Paths without an endpoint, as patterns: `*` is any segment, and what follows may be there too.
pub(crate) const NOT_YET: [&str; 0] = [];

/// Paths to try, at least one of each pattern.
const SAMPLES: [(&str, &str); 0] = [];

/// Whether there is no endpoint for a path yet.
pub(crate) fn is_not_yet(path: &str) -> bool {
    NOT_YET.iter().any(|pattern| {
        let mut segments = path.split('/');
        pattern.split('/').all(|wanted| segments.next().is_some_and(|segment| wanted == "*" || wanted == segment))
    })
}

#[test]
fn what_is_left_out_has_no_endpoint() {
    let tenant = Tenant::new();
    for (method, path) in SAMPLES {
        let path = path.replace("{project}", &tenant.project);
        assert!(is_not_yet(path.split('?').next().unwrap()), "{path} is not in the list");
        let answer = tenant.send(Call::new(method, &*path).bearer(&tenant.token));
        let says = answer.text();
        assert_eq!(answer.status, 404, "{method} {path} answers now: take it off the list\n{says}");
        assert!(says.contains("no such path"), "{method} {path} has an endpoint now: take it off the list\n{says}");
    }
    let tried = |pattern: &&str| SAMPLES.iter().any(|(_, path)| is_like(pattern, path));
    assert!(NOT_YET.iter().all(tried), "each pattern is tried");
}

fn is_like(pattern: &str, path: &str) -> bool {
    path.starts_with(pattern) || path.replace("{project}", "*").starts_with(pattern)
}
