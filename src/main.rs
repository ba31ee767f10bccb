//! The program: see [`headcount::cli`].

use std::process::ExitCode;

/// Events are made on one thread and dropped on another, which is what this allocator is good at.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    headcount::cli::main()
}
