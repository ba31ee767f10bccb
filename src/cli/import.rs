//! Being written.
#[derive(Debug, clap::Args)] pub struct ImportArgs {}
pub fn run(_: &crate::config::Settings, _: &ImportArgs) -> Result<std::process::ExitCode, super::Failure> { Err(super::Failure(String::new())) }
pub fn settle(_: &headcount_actors::Engine) {}
