//! The program: see [`headcount::cli`].

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: headcount_allocator::MiMalloc = headcount_allocator::MiMalloc;

fn main() -> ExitCode {
    headcount_allocator::configure();
    headcount::cli::main()
}
