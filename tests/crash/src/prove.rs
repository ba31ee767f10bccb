//! `prove`: verifies that the campaigns detect violations. Builds a server that makes mistakes on
//! purpose; the campaigns must detect each mistake, and pass without one.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::arguments::ProveArguments;
use crate::error::{Result, harness, violation};

/// A campaign, and the mistake that it must detect.
struct Trial {
    campaign: &'static str,
    fault: Option<&'static str>,
    cycles: usize,
    /// The faults of a cluster.
    faults: &'static str,
}

const fn trial(campaign: &'static str, fault: Option<&'static str>, cycles: usize) -> Trial {
    Trial { campaign, fault, cycles, faults: "" }
}

const fn of_cluster(faults: &'static str, fault: Option<&'static str>, cycles: usize) -> Trial {
    Trial { campaign: "cluster", fault, cycles, faults }
}

/// Only a power cut loses data that was written but not synced. An answer before the event is
/// counted loses nothing, but an immediate read detects it in any campaign. An answer before the
/// write also loses the event if the write fails. Some cycles lose nothing, where the kill or the
/// cut comes when all is written; the first one that does ends a trial.
const TRIALS: [Trial; 9] = [
    trial("kill", None, 2),
    trial("power", None, 2),
    trial("faults", None, 6),
    trial("kill", Some("ack-before-write"), 20),
    trial("power", Some("ack-before-write"), 20),
    trial("faults", Some("ack-before-write"), 200),
    trial("power", Some("ack-before-sync"), 6),
    trial("kill", Some("ack-before-apply"), 2),
    trial("power", Some("ack-before-apply"), 2),
];

/// Those of a cluster. What a leader loses is missed once another node has read the stream. A node
/// that is frozen, and goes on, must not answer as the owner that it was. A broker that is frozen
/// for a moment records messages that nobody has an answer to.
const CLUSTER_TRIALS: [Trial; 6] = [
    of_cluster("leader,owner,pause", None, 1),
    of_cluster("external-ids", Some("ack-before-apply"), 1),
    of_cluster("leader,owner", Some("ack-before-quorum"), 2),
    of_cluster("owner", Some("no-epoch-record"), 1),
    of_cluster("freeze,owner", Some("resend-after-unknown"), 1),
    of_cluster("pause", Some("lease-ignored"), 1),
];

/// Result of a trial.
enum Verdict {
    Passed,
    Detected(String),
    Skipped,
}

/// Runs the campaign. `--binary` must have been built with fault injection; by default the campaign
/// builds it.
///
/// # Errors
/// A violation if a mistake is not detected, or a correct server fails.
pub fn run(arguments: &ProveArguments) -> Result<()> {
    let ProveArguments { common, nats, only_mistakes } = arguments;
    let trials: &[Trial] = if nats.is_some() { &CLUSTER_TRIALS } else { &TRIALS };
    let trials: Vec<&Trial> = trials.iter().filter(|trial| trial.fault.is_some() || !only_mistakes).collect();
    let binary = match &common.binary {
        Some(binary) => binary.clone(),
        None => build_with_faults()?,
    };
    let (mut wrong, mut skipped) = (Vec::new(), 0);
    for trial in &trials {
        let name = [trial.campaign, trial.faults].join(" ");
        let name = format!("{} with {}", name.trim_end(), trial.fault.unwrap_or("no fault"));
        let verdict = attempt(arguments, &binary, trial)?;
        match (&verdict, trial.fault) {
            (Verdict::Passed, None) => println!("{name}: passed, as expected"),
            (Verdict::Detected(what), Some(_)) => println!("{name}: DETECTED, as expected: {what}"),
            (Verdict::Skipped, _) => {
                skipped += 1;
                println!("{name}: SKIPPED: this machine can't mount file systems, or has no broker");
            }
            (Verdict::Passed, Some(_)) => wrong.push(format!("{name} was not detected")),
            (Verdict::Detected(what), None) => wrong.push(format!("{name} failed: {what}")),
        }
    }
    if !wrong.is_empty() {
        return Err(violation(wrong.join("; ")));
    }
    let without = if *only_mistakes { "" } else { ", and none reported without one" };
    println!("prove: {} trials, {skipped} skipped: every mistake was detected{without}", trials.len());
    Ok(())
}

/// Builds a server with fault injection, and returns the path of a copy.
///
/// It shares the target directory with the usual build, whose dependencies it has, and leaves the
/// usual program in its place.
///
/// # Errors
/// A build fails, or the program can't be copied.
pub fn build_with_faults() -> Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    build(&["--features", "fault-injection"])?;
    let copy = target.join("debug/headcount-with-faults");
    std::fs::copy(target.join("debug/headcount"), &copy)?;
    build(&[])?;
    Ok(copy)
}

fn build(options: &[&str]) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // With the example, cargo selects the features of other crates as for tests, so that both
    // builds share those crates.
    let package = ["build", "--locked", "--package", "headcount", "--bin", "headcount", "--example", "embedded_axum"];
    match Command::new(cargo).args(package).args(options).status()?.success() {
        true => Ok(()),
        false => Err(harness(format!("the server does not build with the options {options:?}"))),
    }
}

/// Runs a campaign in another process of this program.
fn attempt(arguments: &ProveArguments, binary: &Path, trial: &Trial) -> Result<Verdict> {
    let common = &arguments.common;
    let mut command = Command::new(std::env::current_exe()?);
    command.args([trial.campaign, "--discard", "--cycles", &trial.cycles.to_string(), "--seed", &common.seed().to_string()]);
    command.arg("--binary").arg(binary).arg("--work-dir").arg(&common.work_dir).stdin(Stdio::null()).stderr(Stdio::inherit());
    if let Some(fault) = trial.fault {
        command.args(["--fault", fault]);
    }
    if let Some(nats) = arguments.nats.as_ref().filter(|_| !trial.faults.is_empty()) {
        command.args(["--faults", trial.faults]).arg("--nats").arg(nats);
    }
    let output = command.output()?;
    let output_text = String::from_utf8_lossy(&output.stdout);
    let violation = output_text.lines().find(|line| line.starts_with("VIOLATION"));
    match (output.status.code(), violation) {
        (Some(0), _) if output_text.contains("SKIPPED") => Ok(Verdict::Skipped),
        (Some(0), _) => Ok(Verdict::Passed),
        (Some(1), Some(what)) => Ok(Verdict::Detected(what.chars().take(240).collect())),
        _ => Err(harness(format!("{} ended with {}: {output_text}", trial.campaign, output.status))),
    }
}
