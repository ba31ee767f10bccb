//! The list of the contents of a partition's published state.

use headcount_domain::Position;
use serde::{Deserialize, Serialize};

use crate::files::list::{ListError, decode_list};
use crate::log::{Chain, Link};

/// The version of new lists.
const VERSION: u32 = 1;

/// An object of a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StateObject {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) sha256: String,
}

/// A file of a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StateFile {
    /// The number of the file at the node that wrote it.
    pub(super) id: u64,
    #[serde(flatten)]
    pub(super) object: StateObject,
}

/// The last message that a state reflects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StateEnd {
    sequence: u64,
    /// The chain as hexadecimal digits.
    chain: String,
}

impl From<Link> for StateEnd {
    fn from(Link { sequence, chain }: Link) -> Self {
        Self { sequence, chain: format!("{:032x}", chain.0) }
    }
}

impl StateEnd {
    /// Returns the message; `None` if the chain has characters that are not digits.
    pub(super) fn link(&self) -> Option<Link> {
        let chain = Chain(u128::from_str_radix(&self.chain, 16).ok()?);
        Some(Link { sequence: self.sequence, chain })
    }
}

/// The object that lists a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StateList {
    version: u32,
    /// The version of the state's format.
    pub(super) state_version: String,
    /// The position up to which the state reflects all events.
    pub(super) position: Position,
    /// The last message that the state reflects in part or whole, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) end: Option<StateEnd>,
    /// The number of dead letters up to that message. The state doesn't reflect them.
    pub(super) letters: usize,
    /// The object with all data that is in no file.
    pub(super) small: StateObject,
    /// The files of records, in order.
    pub(super) tables: Vec<StateFile>,
    /// The files of external ids, in order.
    pub(super) external_ids: Vec<StateFile>,
}

impl StateList {
    pub(super) fn new(
        (state_version, letters): (String, usize),
        (position, end): (Position, Option<Link>),
        small: StateObject,
        (tables, external_ids): (Vec<StateFile>, Vec<StateFile>),
    ) -> Self {
        let end = end.map(StateEnd::from);
        Self { version: VERSION, state_version, position, end, letters, small, tables, external_ids }
    }

    pub(super) fn encode(&self) -> Result<Vec<u8>, ListError> {
        serde_json::to_vec(self).map_err(|error| ListError::Damaged(error.to_string()))
    }

    /// Decodes a list that must have this SHA-256.
    pub(super) fn decode(bytes: &[u8], sha256: &str) -> Result<Self, ListError> {
        decode_list(bytes, sha256, VERSION)
    }

    /// The names of the state's objects, without the list itself.
    pub(super) fn objects(&self) -> impl Iterator<Item = &str> {
        let files = self.tables.iter().chain(&self.external_ids).map(|file| file.object.name.as_str());
        files.chain([self.small.name.as_str()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::bucket::sha256_of;

    #[test]
    fn a_list_is_read_as_it_was_written_and_any_flipped_byte_is_noticed() {
        let object = |name: &str| StateObject { name: name.to_owned(), bytes: 7, sha256: "ab".to_owned() };
        let files = (vec![StateFile { id: 3, object: object("a") }], vec![StateFile { id: 3, object: object("b") }]);
        let end = Link { sequence: 1, chain: Chain(u128::MAX - 1) };
        let list = StateList::new(("v".to_owned(), 1), (8_192, Some(end)), object("c"), files);
        let bytes = list.encode().unwrap();
        let sha256 = sha256_of(&bytes);
        assert_eq!(StateList::decode(&bytes, &sha256).unwrap(), list);
        assert_eq!(list.end.as_ref().and_then(StateEnd::link), Some(end));
        assert_eq!(list.objects().collect::<Vec<_>>(), ["a", "b", "c"]);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(StateList::decode(&damaged, &sha256).is_err(), "byte {at}");
        }
        let later = br#"{"version":2}"#;
        assert!(matches!(StateList::decode(later, &sha256_of(later)), Err(ListError::Newer(2))));
    }
}
