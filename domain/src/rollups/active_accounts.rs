//! Active accounts per day: companies, and identities without a company. The divisor of `arpa`.

use crate::rollups::at_level::at_level;
use crate::rollups::distinct;
use crate::rollups::distinct::DayAndGap;

at_level!(
    /// See the module.
    ActiveAccounts, 2, "active_accounts", DayAndGap => i64, Account, distinct::concerned, distinct::contribute, Accounts
);
