//! The answers of commands, on standard output.

use super::failure::Failure;

/// Prints one line of JSON, or text for people.
pub(crate) fn print(json: bool, value: &impl serde::Serialize, text: impl FnOnce() -> String) -> Result<(), Failure> {
    let text = if json {
        serde_json::to_string(value).map_err(|error| Failure::new("the answer could not be written", error))?
    } else {
        text()
    };
    println!("{text}");
    Ok(())
}
