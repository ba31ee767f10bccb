//! The program: see [`headcount::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    headcount::cli::main()
}
