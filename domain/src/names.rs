//! Enumerations whose values have names, which the API and errors use.

use std::fmt::Display;
use std::str::FromStr;

/// The error for an unknown name; its message lists the allowed names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("is not one of: {allowed}")]
pub struct UnknownName {
    /// The allowed names, separated by commas.
    pub allowed: String,
}

/// An enumeration whose values have names. Defined by [`named_values!`](crate::named_values).
pub trait NamedValues: Copy + Display + FromStr<Err = UnknownName> + 'static {
    /// Every value.
    const ALL: &'static [Self];

    /// Returns the names of all values.
    fn names() -> Vec<String> {
        Self::ALL.iter().map(ToString::to_string).collect()
    }
}

/// Defines an enumeration of named values: the list of values, their names (by the method after
/// `by`), and parsing.
#[macro_export]
macro_rules! named_values {
    (
        $(#[$attribute:meta])*
        pub enum $name:ident by $method:ident {
            $($(#[$value_attribute:meta])* $value:ident = $text:literal,)+
        }
    ) => {
        $(#[$attribute])*
        pub enum $name {
            $($(#[$value_attribute])* $value,)+
        }

        impl $name {
            /// Every value, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$value),+];

            /// The value's name.
            pub const fn $method(self) -> &'static str {
                match self { $(Self::$value => $text),+ }
            }
        }

        impl $crate::names::NamedValues for $name {
            const ALL: &'static [Self] = Self::ALL;
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.$method())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::names::UnknownName;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let unknown = || $crate::names::UnknownName { allowed: [$($text),+].join(", ") };
                Self::ALL.iter().copied().find(|value| value.$method() == text).ok_or_else(unknown)
            }
        }
    };
}
