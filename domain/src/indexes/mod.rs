//! Lookups that are not sums: the dictionary, numbers and names of groups, links and aliases.

mod company_links;
pub mod dictionary;
mod group_names;
mod member_aliases;

pub use company_links::{CompanyLink, CompanyLinks, Link};
pub use group_names::{GroupNames, GroupNumber, GroupNumbers, NamePrefix};
pub use member_aliases::{MemberAlias, MemberAliases};
