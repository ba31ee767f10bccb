//! Named histories that once failed: see `tests/histories/src/regressions`.

use headcount_domain::limits::Limits;
use headcount_histories::{Care, regressions};

use super::{Folded, NOW_MS, TINY};

#[test]
fn what_once_was_hard_stays_right() {
    for care in [Care::AtTheEnd, Care::AfterEachStep, Care::WithRestarts] {
        for items in [1, 1024] {
            for regression in regressions(NOW_MS, care) {
                let outcome = regression.run(&mut Folded { limits: Limits { page_items: items, ..TINY }, ..Folded::default() });
                assert!(outcome.is_ok(), "{}, {care:?}, pages of {items}: {}", regression.name, outcome.unwrap_err());
            }
        }
    }
}
