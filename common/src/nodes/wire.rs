//! The bytes of questions and answers between nodes: a tag of two bytes (little-endian), and then a
//! value in the encoding of the store, which begins with its version.

use headcount_domain::{OrganizationId, ProjectId};
use headcount_storage::codec::{self, CodecError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::ask::AskNodeError;

/// The maximum size of a question in bytes: some two million keys.
pub const MAX_REQUEST_BYTES: usize = 32 << 20;
/// The maximum size of an answer in bytes: some three million keys.
pub const MAX_ANSWER_BYTES: usize = 48 << 20;
/// The maximum number of projects in a request.
pub const MAX_PROJECTS: usize = 256;

/// The version of requests and answers of every tag.
const VERSION: u8 = 1;

/// A request to another node.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NodeRequest<Q> {
    /// The organization that the question is about.
    pub organization: OrganizationId,
    /// Projects of the organization that the other node owns.
    pub projects: Vec<ProjectId>,
    /// The question.
    pub question: Q,
}

impl<Q: Serialize> NodeRequest<Q> {
    /// Encodes a request.
    ///
    /// # Errors
    /// Returns [`AskNodeError::TooLarge`].
    pub fn encode(&self, tag: u16) -> Result<Vec<u8>, AskNodeError> {
        tagged(tag, self, MAX_REQUEST_BYTES)
    }
}

impl<Q: DeserializeOwned> NodeRequest<Q> {
    /// Decodes a request. Its tag means that the question is a `Q`.
    ///
    /// # Errors
    /// Returns [`AskNodeError::OtherVersion`], [`AskNodeError::TooLarge`].
    pub fn decode(bytes: &[u8]) -> Result<Self, AskNodeError> {
        let request: Self = codec::decode(VERSION, untagged(bytes)?.1).map_err(|error| unread(&error))?;
        if request.projects.len() > MAX_PROJECTS { Err(AskNodeError::TooLarge) } else { Ok(request) }
    }
}

/// Returns the tag of a request.
///
/// # Errors
/// Returns [`AskNodeError::OtherVersion`], [`AskNodeError::TooLarge`].
pub fn tag_of(request: &[u8]) -> Result<u16, AskNodeError> {
    if request.len() > MAX_REQUEST_BYTES {
        return Err(AskNodeError::TooLarge);
    }
    untagged(request).map(|(tag, _)| tag)
}

/// Encodes the answer to a question with this tag.
///
/// # Errors
/// Returns [`AskNodeError::TooLarge`].
pub fn encode_answer<A: Serialize>(tag: u16, answer: &A) -> Result<Vec<u8>, AskNodeError> {
    tagged(tag, answer, MAX_ANSWER_BYTES)
}

/// Decodes the answer to a question with this tag.
///
/// # Errors
/// Returns [`AskNodeError::OtherVersion`].
pub fn decode_answer<A: DeserializeOwned>(tag: u16, bytes: &[u8]) -> Result<A, AskNodeError> {
    match untagged(bytes)? {
        (found, value) if found == tag => codec::decode(VERSION, value).map_err(|error| unread(&error)),
        (found, _) => Err(AskNodeError::OtherVersion(format!("it answered {found} when asked {tag}"))),
    }
}

fn tagged<T: Serialize>(tag: u16, value: &T, most: usize) -> Result<Vec<u8>, AskNodeError> {
    let mut bytes = tag.to_le_bytes().to_vec();
    codec::encode_into(VERSION, value, &mut bytes).map_err(|error| match error {
        CodecError::TooLarge => AskNodeError::TooLarge,
        error => AskNodeError::NoAnswer(error.to_string()),
    })?;
    if bytes.len() > most { Err(AskNodeError::TooLarge) } else { Ok(bytes) }
}

fn untagged(bytes: &[u8]) -> Result<(u16, &[u8]), AskNodeError> {
    let (tag, value) = bytes.split_first_chunk().ok_or_else(|| unread(&CodecError::Truncated))?;
    Ok((u16::from_le_bytes(*tag), value))
}

fn unread(error: &CodecError) -> AskNodeError {
    AskNodeError::OtherVersion(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> NodeRequest<(u32, String)> {
        let projects = vec![ProjectId(1), ProjectId(u64::MAX)];
        NodeRequest { organization: OrganizationId(300), projects, question: (5, "a".to_owned()) }
    }

    /// Nodes of other program versions read these bytes.
    #[test]
    fn the_bytes_of_requests_and_answers_stay() {
        let golden = [7, 1, 1, 251, 44, 1, 2, 1, 253, 255, 255, 255, 255, 255, 255, 255, 255, 5, 1, 97];
        assert_eq!(request().encode(263).unwrap(), golden);
        let read = NodeRequest::<(u32, String)>::decode(&golden).unwrap();
        assert_eq!(
            (read.organization, read.projects, read.question),
            (OrganizationId(300), request().projects, request().question)
        );
        assert_eq!(encode_answer(263, &vec![Some(1_u64), None]).unwrap(), [7, 1, 1, 2, 1, 1, 0]);
    }

    #[test]
    fn other_bytes_are_of_another_version() {
        let bytes = request().encode(9).unwrap();
        let is_refused = |bytes: &[u8]| matches!(NodeRequest::<(u32, String)>::decode(bytes), Err(AskNodeError::OtherVersion(_)));
        for length in 0..bytes.len() {
            assert!(is_refused(&bytes[..length]), "{length} bytes");
        }
        assert!(is_refused(&[&bytes[..], &[0]].concat()), "trailing bytes");
        let mut other = bytes;
        other[2] += 1;
        assert!(is_refused(&other), "another version");
        let answer = encode_answer(9, &vec![1_u64]).unwrap();
        assert_eq!(decode_answer::<Vec<u64>>(9, &answer), Ok(vec![1]));
        assert!(matches!(decode_answer::<Vec<u64>>(10, &answer), Err(AskNodeError::OtherVersion(_))), "another tag");
    }

    #[test]
    fn what_is_too_large_is_refused() {
        let mut many = request();
        many.projects = vec![ProjectId(1); MAX_PROJECTS + 1];
        let refused = NodeRequest::<(u32, String)>::decode(&many.encode(1).unwrap());
        assert_eq!(refused.map(|_| ()), Err(AskNodeError::TooLarge));
        assert_eq!(tag_of(&vec![0; MAX_REQUEST_BYTES + 1]), Err(AskNodeError::TooLarge));
        assert_eq!(encode_answer(1, &vec![0_u8; MAX_ANSWER_BYTES]), Err(AskNodeError::TooLarge));
        assert_eq!(encode_answer(1, &vec![0_u8; 2 * MAX_ANSWER_BYTES]), Err(AskNodeError::TooLarge));
    }

    /// A claimed length allocates nothing.
    #[test]
    fn a_claimed_length_is_not_believed() {
        for claimed in [[253; 9], [255; 9]] {
            let bytes = [&[0, 0, 1, 1][..], &claimed].concat();
            assert!(matches!(NodeRequest::<()>::decode(&bytes), Err(AskNodeError::OtherVersion(_))));
        }
    }
}
