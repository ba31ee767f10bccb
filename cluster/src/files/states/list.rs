//! What the published state of a partition consists of.

use headcount_domain::intake::event::Position;
use serde::{Deserialize, Serialize};

use crate::files::list::{ListError, decode_list};

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
    /// Its number at the node that wrote it.
    pub(super) id: u64,
    #[serde(flatten)]
    pub(super) object: StateObject,
}

/// The object that lists a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StateList {
    version: u32,
    /// The version of the program's states.
    pub(super) state_version: String,
    /// The position up to which the state reflects everything.
    pub(super) position: Position,
    /// How many events up to there were set aside, and are not in it.
    pub(super) letters: usize,
    /// What lies in no file.
    pub(super) small: StateObject,
    /// The files of records, in order.
    pub(super) tables: Vec<StateFile>,
    /// The files of external ids, in order.
    pub(super) external_ids: Vec<StateFile>,
}

impl StateList {
    pub(super) fn new(
        (state_version, position, letters): (String, Position, usize),
        small: StateObject,
        (tables, external_ids): (Vec<StateFile>, Vec<StateFile>),
    ) -> Self {
        Self { version: VERSION, state_version, position, letters, small, tables, external_ids }
    }

    pub(super) fn encode(&self) -> Result<Vec<u8>, ListError> {
        serde_json::to_vec(self).map_err(|error| ListError::Damaged(error.to_string()))
    }

    /// Reads a list that has this SHA-256.
    pub(super) fn decode(bytes: &[u8], sha256: &str) -> Result<Self, ListError> {
        decode_list(bytes, sha256, VERSION)
    }

    /// The names of its objects, but for the list itself.
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
        let list = StateList::new(("v".to_owned(), 8_192, 1), object("c"), files);
        let bytes = list.encode().unwrap();
        let sha256 = sha256_of(&bytes);
        assert_eq!(StateList::decode(&bytes, &sha256).unwrap(), list);
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
