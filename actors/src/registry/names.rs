//! The enumerations of the management API, each value with its only spelling.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The error for a name that is not in the list; its message lists the allowed names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("is none of: {allowed}")]
pub struct UnknownName {
    /// The allowed names, separated by commas.
    pub allowed: String,
}

macro_rules! names {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$variant_doc])* #[serde(rename = $text)] $variant,)+
        }

        impl $name {
            /// All values, in the order of the documentation.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The name in the API and on disk.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }
        }

        impl FromStr for $name {
            type Err = UnknownName;

            fn from_str(text: &str) -> Result<Self, UnknownName> {
                Self::ALL.iter().copied().find(|value| value.as_str() == text).ok_or_else(|| UnknownName {
                    allowed: [$($text),+].join(", "),
                })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

names! {
    /// What an API token may be used for. None implies another.
    Scope {
        /// Events, sessions, pages, aggregates.
        AnalyticsRead = "analytics:read",
        /// Orders, attribution, cohorts.
        RevenueRead = "revenue:read",
        /// Users and what they did.
        IdentitiesRead = "identities:read",
        /// Companies, company profiles and their builds.
        CompaniesRead = "companies:read",
        /// Changes of company profiles.
        CompaniesWrite = "companies:write",
        /// Groups.
        GroupsRead = "groups:read",
        /// Lists of privacy requests and their artifacts.
        PrivacyRequestsRead = "privacy_requests:read",
        /// New privacy requests.
        PrivacyRequestsWrite = "privacy_requests:write",
        /// Projects, keys, tokens, the organization's settings.
        Admin = "admin",
        /// The recorded events themselves: lists and exports.
        EventsRead = "events:read",
        /// Events sent by servers.
        EventsWrite = "events:write",
    }
}

names! {
    /// The role of a token's holder in the organization.
    Role {
        /// May do everything that the token's scopes allow.
        Owner = "owner",
        /// May do everything that the token's scopes allow.
        Admin = "admin",
        /// May not do anything that concerns the whole organization.
        Member = "member",
    }
}

names! {
    /// An optional feature of an organization.
    Capability {
        /// Company profiles of the kind `account`.
        TargetAccounts = "target_accounts",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_reads_back_and_is_what_json_says() {
        for scope in Scope::ALL {
            assert_eq!(scope.as_str().parse(), Ok(*scope));
            assert_eq!(serde_json::to_string(scope).unwrap(), format!("\"{scope}\""));
        }
        assert_eq!(Scope::ALL.len(), 10);
        let error = "root".parse::<Role>().unwrap_err();
        assert_eq!(error.to_string(), "is none of: owner, admin, member");
    }
}
