//! The answers of commands, on standard output.

use std::fmt::Display;
use std::io::{self, Write};

use crate::command::failure::Failure;

/// Prints one line of JSON, or text.
pub fn print(json: bool, value: &impl serde::Serialize, text: impl FnOnce() -> String) -> Result<(), Failure> {
    if json {
        print_line(serde_json::to_string(value).map_err(|error| Failure::new("the answer could not be written", error))?)
    } else {
        print_line(text())
    }
}

/// Prints a line of text. A closed reader, such as `head`, is no failure and stops no server.
pub fn print_line(text: impl Display) -> Result<(), Failure> {
    write_line(&mut io::stdout(), &text).map_err(|error| Failure::new("the answer could not be written", error))
}

fn write_line(output: &mut impl Write, text: &impl Display) -> io::Result<()> {
    // In one write, since the reader may close after the line that it waits for.
    match output.write_all(format!("{text}\n").as_bytes()).and_then(|()| output.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails to write.
    struct Failing(io::ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_has_gone_is_no_failure_and_a_full_disk_is() {
        assert!(write_line(&mut Failing(io::ErrorKind::BrokenPipe), &"ready").is_ok());
        let full = write_line(&mut Failing(io::ErrorKind::StorageFull), &"ready");
        assert_eq!(full.unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
