//! `prove`: a test of crashes that notices nothing proves nothing. So a server is built that makes mistakes on purpose, and each
//! of them has to be noticed by the campaign whose business it is; and without a mistake the same build has to pass.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::arguments::Common;
use crate::trouble::{Result, harness, violation};

/// A campaign, and the mistake that it has to notice.
struct Trial {
    campaign: &'static str,
    fault: Option<&'static str>,
    cycles: usize,
}

const fn trial(campaign: &'static str, fault: Option<&'static str>, cycles: usize) -> Trial {
    Trial { campaign, fault, cycles }
}

/// A kill can't lose what was written but not synced: that mistake is for power cuts only. What is answered before it is counted
/// is never lost: a read at once notices it, whatever the campaign. What is answered before it is written is lost, too, if the
/// write fails.
const TRIALS: [Trial; 9] = [
    trial("kill", None, 2),
    trial("power", None, 2),
    trial("faults", None, 6),
    trial("kill", Some("ack-before-write"), 6),
    trial("power", Some("ack-before-write"), 6),
    trial("faults", Some("ack-before-write"), 60),
    trial("power", Some("ack-before-sync"), 6),
    trial("kill", Some("ack-before-apply"), 2),
    trial("power", Some("ack-before-apply"), 2),
];

/// What came of a trial.
enum Came {
    Passed,
    Noticed(String),
    Skipped,
}

/// Runs the campaign. `--binary` names a server that was built with the feature; without it one is built.
///
/// # Errors
/// A mistake that was not noticed is a violation: of the harness's own promise.
pub fn run(common: &Common) -> Result<()> {
    let binary = match &common.binary {
        Some(binary) => binary.clone(),
        None => build_with_faults()?,
    };
    let (mut wrong, mut skipped) = (Vec::new(), 0);
    for trial in &TRIALS {
        let name = format!("{} with {}", trial.campaign, trial.fault.unwrap_or("no fault"));
        let came = attempt(common, &binary, trial)?;
        match (&came, trial.fault) {
            (Came::Passed, None) => println!("{name}: passed, as it should"),
            (Came::Noticed(what), Some(_)) => println!("{name}: NOTICED, as it should be: {what}"),
            (Came::Skipped, _) => {
                skipped += 1;
                println!("{name}: SKIPPED: this machine can't mount");
            }
            (Came::Passed, Some(_)) => wrong.push(format!("{name} was not noticed")),
            (Came::Noticed(what), None) => wrong.push(format!("{name} failed: {what}")),
        }
    }
    if !wrong.is_empty() {
        return Err(violation(wrong.join("; ")));
    }
    println!("prove: {} trials, {skipped} skipped: every mistake was noticed, and nothing where there was none", TRIALS.len());
    Ok(())
}

/// Builds a server that can make mistakes, beside the usual one.
///
/// # Errors
/// It does not build.
pub fn build_with_faults() -> Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let target = target.join("fault-injection");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args([
            "build",
            "--locked",
            "--package",
            "headcount",
            "--bin",
            "headcount",
            "--features",
            "fault-injection",
            "--target-dir",
        ])
        .arg(&target)
        .status()?;
    if !status.success() {
        return Err(harness("the server does not build with the feature fault-injection"));
    }
    Ok(target.join("debug/headcount"))
}

/// Runs a campaign of this very program.
fn attempt(common: &Common, binary: &Path, trial: &Trial) -> Result<Came> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([trial.campaign, "--discard", "--cycles", &trial.cycles.to_string(), "--seed", &common.seed().to_string()]);
    command.arg("--binary").arg(binary).arg("--work-dir").arg(&common.work_dir).stdin(Stdio::null()).stderr(Stdio::inherit());
    if let Some(fault) = trial.fault {
        command.args(["--fault", fault]);
    }
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let violation = said.lines().find(|line| line.starts_with("VIOLATION"));
    match (output.status.code(), violation) {
        (Some(0), _) if said.contains("SKIPPED") => Ok(Came::Skipped),
        (Some(0), _) => Ok(Came::Passed),
        (Some(1), Some(what)) => Ok(Came::Noticed(what.chars().take(240).collect())),
        _ => Err(harness(format!("{} ended with {}: {said}", trial.campaign, output.status))),
    }
}
