//! Property values as keys of groups.

use std::borrow::Cow;

use crate::intake::fields::{Number, Scalar};

const TEXT: u8 = 0;
const NUMBER: u8 = 1;
const BOOL: u8 = 2;
const NULL: u8 = 3;

/// A value as bytes: its type, then its text. Equal values have equal bytes; 5 and `"5"` differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GroupKey<'b>(&'b [u8]);

impl<'b> GroupKey<'b> {
    /// Appends the key of a value to `to`.
    pub fn write(value: &Scalar<'_>, to: &mut Vec<u8>) {
        match value {
            Scalar::Text(text) => {
                to.push(TEXT);
                to.extend_from_slice(text.as_bytes());
            }
            Scalar::Number(number) => {
                to.push(NUMBER);
                to.extend_from_slice(number.to_string().as_bytes());
            }
            Scalar::Bool(value) => {
                to.push(BOOL);
                to.extend_from_slice(if *value { b"true" } else { b"false" });
            }
            Scalar::Null => to.push(NULL),
        }
    }

    /// Reads a key that [`GroupKey::write`] wrote.
    pub fn read(bytes: &'b [u8]) -> Self {
        Self(bytes)
    }

    /// Returns the value.
    pub fn value(self) -> Scalar<'b> {
        let Some((kind, _)) = self.0.split_first() else { return Scalar::Null };
        let text = || std::str::from_utf8(self.text()).unwrap_or_default();
        match *kind {
            TEXT => Scalar::Text(Cow::Borrowed(text())),
            NUMBER => Number::parse(text()).map_or(Scalar::Null, Scalar::Number),
            BOOL => Scalar::Bool(self.text() == b"true"),
            _ => Scalar::Null,
        }
    }

    /// Returns the rank among groups with equal figures: null last, then by text in byte order,
    /// with a number or a boolean before an equal text.
    pub(super) fn rank(self) -> (bool, &'b [u8], bool) {
        let kind = self.0.first().copied().unwrap_or(NULL);
        (kind == NULL, self.text(), kind == TEXT)
    }

    /// Returns the bytes.
    pub const fn as_bytes(self) -> &'b [u8] {
        self.0
    }

    fn text(self) -> &'b [u8] {
        self.0.get(1..).unwrap_or_default()
    }
}
