//! Being written.
#[derive(Debug, clap::Args)] pub struct DemoArgs {}
pub fn run(_: &crate::config::Settings, _: &DemoArgs, _: bool) -> Result<std::process::ExitCode, super::Failure> { Err(super::Failure(String::new())) }
