//! Being written.
#[derive(Debug, clap::Args)] pub struct LoadArgs {}
pub fn run(_: &LoadArgs) -> Result<std::process::ExitCode, super::Failure> { Err(super::Failure(String::new())) }
