//! Typed ids with a canonical spelling, and the keys of records.
//!
//! Projects and organizations have 64 random bits, written as a prefix and eleven base62 digits.
//! The key of an identity or a company is a 128-bit keyed hash of its name ([`KeyHasher`]). Clients
//! see its [`public_id`], which depends only on the organization and the name. So it survives
//! restarts, replays and new hash keys.

use std::fmt;
use std::hash::Hasher as _;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use siphasher::sip128::{Hasher128 as _, SipHasher13};

/// The type of a group that is a company.
pub const COMPANY_TYPE: &str = "company";

const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The error for text that is not an id of the requested kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a valid id")]
pub struct IdError;

macro_rules! numbered_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub struct $name(pub u64);

        impl $name {
            /// The prefix of ids of this kind.
            pub const PREFIX: &'static str = $prefix;
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}{}", $prefix, base62(u128::from(self.0), 11))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                let digits = text.strip_prefix($prefix).ok_or(IdError)?;
                if digits.len() != 11 {
                    return Err(IdError);
                }
                let value = from_base62(digits).ok_or(IdError)?;
                u64::try_from(value).map($name).map_err(|_| IdError)
            }
        }
    };
}

numbered_id!(
    /// A project: it has an order of events, answers and public keys. `prj_…`
    ProjectId,
    "prj_"
);
numbered_id!(
    /// An organization: it owns projects and tokens. `org_…`
    OrganizationId,
    "org_"
);

/// 62 to the power of [`CHUNK_DIGITS`].
const CHUNK: u128 = 62_u128.pow(CHUNK_DIGITS);
/// The number of digits per 64-bit division. Dividing 128 bits is much slower.
const CHUNK_DIGITS: u32 = 10;

/// Writes `value` in base62 with at least `width` digits.
pub fn base62(mut value: u128, width: usize) -> String {
    let mut digits = Vec::with_capacity(width.max(3 * CHUNK_DIGITS as usize));
    while value > 0 {
        let mut chunk = u64::try_from(value % CHUNK).unwrap_or(0);
        value /= CHUNK;
        for _ in 0..CHUNK_DIGITS {
            digits.push(BASE62[usize::try_from(chunk % 62).unwrap_or(0)]);
            chunk /= 62;
        }
    }
    while digits.len() > width && digits.last() == Some(&BASE62[0]) {
        digits.pop();
    }
    digits.resize(width.max(digits.len()), BASE62[0]);
    digits.reverse();
    String::from_utf8(digits).unwrap_or_default()
}

fn from_base62(text: &str) -> Option<u128> {
    text.bytes().try_fold(0u128, |value, byte| {
        let digit = BASE62.iter().position(|d| *d == byte)?;
        value.checked_mul(62)?.checked_add(digit as u128)
    })
}

/// The key of a record within a project: a keyed 128-bit hash of its name.
///
/// Packed to the alignment of its halves: there are millions of them, many beside smaller fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[repr(Rust, packed(8))]
pub struct RecordKey(pub u128);

impl fmt::Debug for RecordKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(hash) = *self;
        write!(f, "{hash:032x}")
    }
}

impl RecordKey {
    /// The bit that marks the keys of users, in the half that hash maps ignore.
    const OF_USER: u128 = 1 << 64;

    /// Whether this is the key of a user, as opposed to any other identity.
    pub fn is_user(self) -> bool {
        self.0 & Self::OF_USER != 0
    }

    /// Returns the first 64 bits.
    pub fn high(self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// Returns the key with the user bit set or cleared.
    fn with_user_bit(self, user: bool) -> Self {
        Self(if user { self.0 | Self::OF_USER } else { self.0 & !Self::OF_USER })
    }
}

/// The number of low bits of a fingerprint that identify an `external_id` within its project. The
/// high bits come from the project's id, which is random.
const ID_BITS: u32 = 80;

/// Returns the first bytes of the fingerprints of a project's `external_id`s. No other project has
/// them.
pub fn external_ids_of(project: ProjectId) -> [u8; 6] {
    let [_, _, a, b, c, d, e, f] = project.0.to_be_bytes();
    [a, b, c, d, e, f]
}

/// The domain separator of the keys of types.
const TYPE_SPACE: u8 = 10;

/// The length of the hashed prefix of a text: its space and scope.
const PREFIX_LEN: usize = size_of::<u8>() + size_of::<u64>();
/// The maximum size of a message that is hashed in one call.
const SHORT_MESSAGE: usize = 128;

/// Computes [`RecordKey`]s and fingerprints with a secret key, so that nobody can craft colliding
/// names.
#[derive(Clone)]
pub struct KeyHasher {
    key: [u8; 16],
    /// The key of the most common type.
    company_type: RecordKey,
}

impl fmt::Debug for KeyHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyHasher(redacted)")
    }
}

impl KeyHasher {
    /// Creates a hasher with `key`, 128 secret random bits of this installation.
    pub fn new(key: [u8; 16]) -> Self {
        let mut hasher = Self { key, company_type: RecordKey(0) };
        hasher.company_type = hasher.hash(TYPE_SPACE, 0, COMPANY_TYPE.as_bytes());
        hasher
    }

    /// Returns the key of the record of a cookieless visitor.
    pub fn visitor(&self, visitor: u128) -> RecordKey {
        self.hash(2, 0, &visitor.to_le_bytes()).with_user_bit(false)
    }

    /// Returns the key of the record of events without consent.
    pub fn nobody(&self) -> RecordKey {
        self.hash(3, 0, &[]).with_user_bit(false)
    }

    /// Returns the key of the record of the user `name`.
    pub fn user(&self, name: &str) -> RecordKey {
        self.hash(0, 0, name.as_bytes()).with_user_bit(true)
    }

    /// Returns the key of the record of the anonymous id `name`.
    pub fn anonymous(&self, name: &str) -> RecordKey {
        self.hash(1, 0, name.as_bytes()).with_user_bit(false)
    }

    /// Returns the key of a company's record.
    pub fn company(&self, key: &str) -> RecordKey {
        self.hash(4, 0, key.as_bytes())
    }

    /// Returns the id of a visitor without an id, from the properties that distinguish a project's
    /// visitors. The key is the key of the day.
    pub fn cookieless(&self, project: ProjectId, visitor: &str) -> u128 {
        self.hash(5, project.0, visitor.as_bytes()).0
    }

    /// Returns the fingerprint of an `external_id` of a project: 80 bits of the id's hash after the
    /// bytes of [`external_ids_of`].
    pub fn external_id(&self, project: ProjectId, external_id: &str) -> u128 {
        (u128::from(project.0) << ID_BITS) | (self.hash(5, project.0, external_id.as_bytes()).0 & !(u128::MAX << ID_BITS))
    }

    /// Returns the key of a normalized e-mail address.
    pub fn email(&self, email: &str) -> RecordKey {
        self.hash(6, 0, email.as_bytes())
    }

    /// Returns the key of the record of a group of a type other than `company`.
    pub fn group(&self, group_type: &str, group_id: &str) -> RecordKey {
        // Types contain no NUL, so it separates the two.
        let mut hasher = SipHasher13::new_with_key(&self.key);
        hasher.write_u8(7);
        hasher.write(group_type.as_bytes());
        hasher.write_u8(0);
        hasher.write(group_id.as_bytes());
        RecordKey(hasher.finish128().as_u128())
    }

    /// Returns a value that identifies this key and the `incarnation` of a data directory, without
    /// revealing the key. Data of another key or incarnation has another value.
    pub fn check_value(&self, incarnation: u128) -> u128 {
        self.hash(9, 0, &incarnation.to_le_bytes()).0
    }

    /// Returns the key of a company's public name.
    pub(crate) fn public_company(&self, name: PublicCompany) -> RecordKey {
        self.hash(8, 0, &name.0.to_le_bytes())
    }

    /// Returns the key of a text in a project's dictionary.
    pub fn name(&self, text: &str) -> RecordKey {
        self.hash(9, 0, text.as_bytes())
    }

    /// Returns the key of a group type.
    pub fn group_type(&self, group_type: &str) -> RecordKey {
        if group_type == COMPANY_TYPE { self.company_type } else { self.hash(TYPE_SPACE, 0, group_type.as_bytes()) }
    }

    fn hash(&self, space: u8, scope: u64, bytes: &[u8]) -> RecordKey {
        let (mut message, len) = ([0; SHORT_MESSAGE], PREFIX_LEN + bytes.len());
        let Some(rest) = message.get_mut(PREFIX_LEN..len) else { return self.hash_in_parts(space, scope, bytes) };
        rest.copy_from_slice(bytes);
        message[0] = space;
        message[1..PREFIX_LEN].copy_from_slice(&scope.to_le_bytes());
        RecordKey(SipHasher13::new_with_key(&self.key).hash(&message[..len]).as_u128())
    }

    /// [`KeyHasher::hash`] for a text of any length. For a short text, several writes cost more
    /// than a copy.
    fn hash_in_parts(&self, space: u8, scope: u64, bytes: &[u8]) -> RecordKey {
        let mut hasher = SipHasher13::new_with_key(&self.key);
        hasher.write_u8(space);
        hasher.write_u64(scope);
        hasher.write(bytes);
        RecordKey(hasher.finish128().as_u128())
    }
}

/// Returns the id for clients: `prefix`, and a hash of the scope and the name.
///
/// The id is the same on every machine and after every replay, so its hash key is fixed. It
/// shortens the name, but does not hide it.
pub fn public_id(prefix: &str, scope: u64, kind: u8, name: &str) -> String {
    [prefix, &base62(public_hash(scope, kind, name.as_bytes()), 22)].concat()
}

/// Returns the id of an event for clients. A duplicate has the id of the first event with its
/// `external_id`.
pub fn event_id(project: ProjectId, external_id: Option<&str>, position: u64) -> String {
    match external_id {
        Some(external_id) => public_id("ev_", project.0, 0, external_id),
        None => public_id("ev_", project.0, 1, &position.to_string()),
    }
}

fn public_hash(scope: u64, kind: u8, name: &[u8]) -> u128 {
    let mut hasher = SipHasher13::new_with_key(b"headcount.ids.v1");
    hasher.write_u64(scope);
    hasher.write_u8(kind);
    hasher.write(name);
    hasher.finish128().as_u128()
}

/// The hash of a company's key in its `co_…` id: the same in every organization and on every
/// machine.
///
/// The id is this hash under a mask of the organization, which can be removed again. So an id
/// identifies its company without a stored list of ids, and two organizations show different ids
/// for the same company.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PublicCompany(pub u128);

impl PublicCompany {
    /// Computes the hash of a company's key.
    pub fn of(key: &str) -> Self {
        Self(public_hash(0, 2, key.as_bytes()))
    }

    /// Returns the id for an organization's clients.
    pub fn to_id(self, organization: OrganizationId) -> String {
        format!("co_{}", base62(self.0 ^ Self::mask(organization), 22))
    }

    /// Parses an id as shown to an organization's clients.
    ///
    /// # Errors
    /// [`IdError`] if the text is not such an id.
    pub(crate) fn from_id(id: &str, organization: OrganizationId) -> Result<Self, IdError> {
        let digits = id.strip_prefix("co_").filter(|digits| digits.len() == 22).ok_or(IdError)?;
        from_base62(digits).map(|hash| Self(hash ^ Self::mask(organization))).ok_or(IdError)
    }

    fn mask(organization: OrganizationId) -> u128 {
        public_hash(organization.0, 3, &[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_one_spelling() {
        for value in [0, 1, 61, 62, u64::MAX] {
            let id = ProjectId(value);
            assert_eq!(id.to_string().len(), 15);
            assert_eq!(id.to_string().parse::<ProjectId>(), Ok(id));
        }
        for bad in ["", "prj_", "prj_1", "org_00000000001", "prj_zzzzzzzzzzz", "prj_0000000000!", "prj_000000000001"] {
            assert_eq!(bad.parse::<ProjectId>(), Err(IdError), "{bad}");
        }
    }

    #[test]
    fn kinds_of_names_never_share_a_key() {
        let hasher = KeyHasher::new([7; 16]);
        let keys = [hasher.user("a"), hasher.anonymous("a"), hasher.company("a"), hasher.nobody()];
        for (i, key) in keys.iter().enumerate() {
            assert!(keys[i + 1..].iter().all(|other| other != key));
        }
        assert_ne!(KeyHasher::new([8; 16]).user("a"), hasher.user("a"));
        for name in ["a", "b", "c", "d", "e", "f"] {
            assert!(hasher.user(name).is_user() && !hasher.anonymous(name).is_user());
        }
        assert_ne!(hasher.external_id(ProjectId(1), "x"), hasher.external_id(ProjectId(2), "x"));
        let of = |project, id: &str| hasher.external_id(ProjectId(project), id).to_be_bytes();
        for project in [1, 1 << 40, u64::MAX] {
            assert!(of(project, "x").starts_with(&external_ids_of(ProjectId(project))) && of(project, "x") != of(project, "y"));
        }
        assert_ne!(external_ids_of(ProjectId(1)), external_ids_of(ProjectId(2)));
    }

    #[test]
    fn short_and_long_texts_are_hashed_alike() {
        let hasher = KeyHasher::new([7; 16]);
        let text: Vec<u8> = (0..=u8::MAX).collect();
        for len in 0..text.len() {
            assert_eq!(hasher.hash(3, 1 << 40, &text[..len]), hasher.hash_in_parts(3, 1 << 40, &text[..len]), "{len} bytes");
        }
    }

    #[test]
    fn a_company_is_found_by_its_id_in_its_own_organization_only() {
        let acme = PublicCompany::of("acme.com");
        let id = acme.to_id(OrganizationId(1));
        assert_eq!(PublicCompany::from_id(&id, OrganizationId(1)), Ok(acme));
        assert_ne!(PublicCompany::from_id(&id, OrganizationId(2)), Ok(acme));
        assert_ne!(acme.to_id(OrganizationId(2)), id);
        for bad in ["", "co_", "co_1", "id_0000000000000000000000", "co_zzzzzzzzzzzzzzzzzzzzzz"] {
            assert_eq!(PublicCompany::from_id(bad, OrganizationId(1)), Err(IdError), "{bad}");
        }
    }

    #[test]
    fn base62_counts() {
        let chunk = |digits: u32| 62_u128.pow(digits);
        for (value, width, expected) in [
            (0, 0, ""),
            (0, 3, "000"),
            (61, 1, "z"),
            (62, 1, "10"),
            (62, 4, "0010"),
            (chunk(10) - 1, 1, "zzzzzzzzzz"),
            (chunk(10), 1, "10000000000"),
            (chunk(10) + 1, 13, "0010000000001"),
            (chunk(20), 1, "100000000000000000000"),
            (u128::MAX, 22, "7n42DGM5Tflk9n8mt7Fhc7"),
            (u128::MAX, 40, "0000000000000000007n42DGM5Tflk9n8mt7Fhc7"),
        ] {
            assert_eq!(base62(value, width), expected);
            assert_eq!(from_base62(expected), Some(value));
        }
    }

    #[test]
    fn public_ids_are_stable() {
        assert_eq!(public_id("id_", 1, 0, "ada"), public_id("id_", 1, 0, "ada"));
        assert_ne!(public_id("id_", 1, 0, "ada"), public_id("id_", 2, 0, "ada"));
        assert_eq!(public_id("id_", 1, 0, "ada").len(), 25);
    }
}
