//! The encoding of stored values: one version byte, then bincode (serde, standard configuration).
//!
//! Only this module uses bincode, so another encoder of the same bytes can replace it. Every stored
//! type has its own version. A reader lists the versions that it understands, each with a function
//! that returns the current type ([`decode_any`]). Decoding stops at [`MAX_ENCODED_BYTES`],
//! whatever lengths the bytes claim.

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// The largest encoded value, version byte included: 64 MiB.
pub const MAX_ENCODED_BYTES: usize = 64 << 20;

/// An error of encoding or decoding.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The bytes have no version byte.
    #[error("nothing to decode: the value is empty")]
    Empty,
    /// The reader does not understand the version.
    #[error("unknown version {found} (known versions: {understood:?})")]
    UnknownVersion {
        /// The version in the bytes.
        found: u8,
        /// The versions that the reader understands.
        understood: Vec<u8>,
    },
    /// The value ended before the bytes did.
    #[error("{count} extra bytes after the value")]
    TrailingBytes {
        /// The number of extra bytes.
        count: usize,
    },
    /// The bytes ended before the value did.
    #[error("the value is truncated")]
    Truncated,
    /// The value is larger than [`MAX_ENCODED_BYTES`].
    #[error("the value is larger than {MAX_ENCODED_BYTES} bytes")]
    TooLarge,
    /// The bytes are not a value of this type.
    #[error("not a valid value: {0}")]
    Malformed(String),
    /// The value cannot be encoded (for example a sequence without a known length).
    #[error("cannot be encoded: {0}")]
    Unencodable(String),
}

/// A version of a stored type that a reader understands: its number, and a function that decodes
/// its payload to the current type.
pub type Version<T> = (u8, fn(&[u8]) -> Result<T, CodecError>);

fn config() -> impl bincode::config::Config {
    bincode::config::standard().with_limit::<MAX_ENCODED_BYTES>()
}

/// Appends the written bytes. bincode's own writer uses [`std::io::Write`] for every number, and
/// counts bytes.
struct Appender<'b>(&'b mut Vec<u8>);

impl bincode::enc::write::Writer for Appender<'_> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> Result<(), bincode::error::EncodeError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// Encodes `value` after the version byte.
///
/// # Errors
/// [`CodecError::TooLarge`] and [`CodecError::Unencodable`].
pub fn encode<T: Serialize + ?Sized>(version: u8, value: &T) -> Result<Vec<u8>, CodecError> {
    let mut bytes = Vec::new();
    encode_into(version, value, &mut bytes)?;
    Ok(bytes)
}

/// Appends the version byte and the encoded `value` to `bytes`. After an error `bytes` is
/// unchanged.
///
/// # Errors
/// Same as [`encode`].
pub fn encode_into<T: Serialize + ?Sized>(version: u8, value: &T, bytes: &mut Vec<u8>) -> Result<(), CodecError> {
    let start = bytes.len();
    bytes.push(version);
    let outcome = bincode::serde::encode_into_writer(value, Appender(bytes), config());
    let outcome = match outcome {
        Ok(()) if bytes.len() - start > MAX_ENCODED_BYTES => Err(CodecError::TooLarge),
        Ok(()) => Ok(()),
        Err(error) => Err(CodecError::Unencodable(error.to_string())),
    };
    if outcome.is_err() {
        bytes.truncate(start);
    }
    outcome
}

/// Splits the version byte from the payload.
///
/// # Errors
/// [`CodecError::Empty`] when there is no version byte.
pub fn split(bytes: &[u8]) -> Result<(u8, &[u8]), CodecError> {
    let (version, payload) = bytes.split_first().ok_or(CodecError::Empty)?;
    Ok((*version, payload))
}

/// Decodes a value of exactly one version.
///
/// # Errors
/// Any [`CodecError`] except those of encoding.
pub fn decode<T: DeserializeOwned>(version: u8, bytes: &[u8]) -> Result<T, CodecError> {
    decode_any(bytes, &[(version, payload)])
}

/// Decodes a value of any of the `versions`.
///
/// # Errors
/// Same as [`decode`].
pub fn decode_any<T>(bytes: &[u8], versions: &[Version<T>]) -> Result<T, CodecError> {
    let (found, rest) = split(bytes)?;
    match versions.iter().find(|(version, _)| *version == found) {
        Some((_, read)) => read(rest),
        None => Err(CodecError::UnknownVersion { found, understood: versions.iter().map(|(version, _)| *version).collect() }),
    }
}

/// Decodes a payload without its version byte, using all bytes. For the list of versions of
/// [`decode_any`].
///
/// # Errors
/// Same as [`decode`].
pub fn payload<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
    use bincode::error::DecodeError;
    if bytes.len() >= MAX_ENCODED_BYTES {
        return Err(CodecError::TooLarge);
    }
    match bincode::serde::borrow_decode_from_slice(bytes, config()) {
        Ok((value, used)) if used == bytes.len() => Ok(value),
        Ok((_, used)) => Err(CodecError::TrailingBytes { count: bytes.len() - used }),
        Err(DecodeError::UnexpectedEnd { .. }) => Err(CodecError::Truncated),
        Err(DecodeError::LimitExceeded) => Err(CodecError::TooLarge),
        Err(error) => Err(CodecError::Malformed(error.to_string())),
    }
}

#[cfg(test)]
#[path = "codec_tests.rs"]
mod tests;
