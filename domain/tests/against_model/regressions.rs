//! Histories with a name, of which every one stays right for ever: see `tests/histories/src/regressions`.

use headcount_domain::cache::paged::set_page_items;
use headcount_histories::{Care, regressions};

use super::{Folded, NOW_MS, own_pages};

#[test]
fn what_once_was_hard_stays_right() {
    let _own = own_pages();
    for care in [Care::AtTheEnd, Care::AfterEachStep, Care::WithRestarts] {
        for items in [1, 1024] {
            set_page_items(items);
            for regression in regressions(NOW_MS, care) {
                let outcome = regression.run(&mut Folded::default());
                assert!(outcome.is_ok(), "{}, {care:?}, pages of {items}: {}", regression.name, outcome.unwrap_err());
            }
        }
    }
}
