//! Lookups that are not sums: the dictionary, numbers and names of groups, links and aliases.

mod company_links;
pub mod dictionary;
mod group_names;
mod group_numbers;
mod member_aliases;

pub use company_links::{CompanyLink, CompanyLinks, Link};
pub use group_names::{GroupNames, NamePrefix};
pub use group_numbers::{GroupNumber, GroupNumbers};
pub use member_aliases::{MemberAlias, MemberAliases};
