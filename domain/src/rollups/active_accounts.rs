//! Active accounts per day: companies, and identities without a company. The divisor of `arpa`.

use crate::rollups::distinct;
use crate::rollups::distinct::DayAndGap;
use crate::rollups::rollup::rollup;

rollup! {
    /// See the module.
    ActiveAccounts: tag 2, "active_accounts", room Sled, version 1, figure Accounts, dated,
    key DayAndGap => value i64,
    of Account when |change| change.new_day,
    |facts, change, sign, cells| distinct::contribute(facts, change, sign, cells)
}
