//! JSON objects that end with a checksum of everything before it.

/// The text before the checksum. The checksum covers everything before this text.
const KEY: &str = ",\"crc32c\":\"";
/// The text after the checksum.
const END: &str = "\"}\n";
const DIGITS: usize = 8;

/// Appends the checksum to a JSON object.
pub(crate) fn append(mut object: String) -> String {
    // The closing brace follows the checksum.
    object.pop();
    let checksum = crc32c::crc32c(object.as_bytes());
    format!("{object}{KEY}{checksum:08x}{END}")
}

/// Checks an object that ends with its checksum, and returns it as text.
///
/// # Errors
/// A message.
pub(crate) fn check(bytes: &[u8]) -> Result<&str, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    let matches = || {
        let rest = text.strip_suffix(END)?;
        let (rest, digits) = rest.split_at_checked(rest.len().checked_sub(DIGITS)?)?;
        let rest = rest.strip_suffix(KEY)?;
        (digits == format!("{:08x}", crc32c::crc32c(rest.as_bytes()))).then_some(text)
    };
    matches().ok_or_else(|| "it does not match its checksum".to_owned())
}
