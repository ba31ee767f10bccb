//! `disk-full`: fills up the disk under load, and frees it again.
//!
//! - *Guarded*: less space is free than `--min-free-bytes`. The server must refuse events (503,
//!   `Retry-After`), report that it is not ready, and recover without intervention once space is
//!   free.
//! - *Unguarded*: `--min-free-bytes=0`, and the disk is filled to the last byte. The server may
//!   refuse events, but must not exit or lose acknowledged ones.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::arguments::Common;
use crate::error::{CampaignError, Result, harness, violation};
use crate::http::{Connection, Credential, Request, Response};
use crate::load::{Load, Pace};
use crate::mount::{self, Mount};
use crate::rig::{Rig, WorkDir};
use crate::server::Server;

const IMAGE_BYTES: u64 = 640 << 20;
/// Required and actual free space in the guarded case.
const MIN_FREE: &str = "--min-free-bytes=32MiB";
const LEFT_BYTES: u64 = 8 << 20;
/// Maximum time until the server reports a full disk.
const NOTICE: Duration = Duration::from_secs(5);
/// Maximum time until the server recovers once space is free.
const RECOVERY: Duration = Duration::from_secs(15);
/// Maximum time to fill up the segments that the log has preallocated.
const FILL: Duration = Duration::from_secs(90);

/// Runs the campaign.
///
/// # Errors
/// A violation, or the harness fails.
pub async fn run(common: &Common) -> Result<()> {
    let mut work = WorkDir::make(common)?;
    let (image, path) = (work.path().join("disk.img"), work.path().join("disk"));
    let on_loop = mount::make_image(&image, IMAGE_BYTES).and_then(|()| Mount::image(&image, &path));
    let disk = match on_loop {
        Err(CampaignError::Skipped(why)) => {
            println!("no ext4 on a loop device, using tmpfs: {why}");
            Mount::memory(&path, IMAGE_BYTES)?
        }
        disk => disk?,
    };
    let mut rig = Rig::make(common, disk.path().join("data"), &["--checkpoint-interval=1s", MIN_FREE]).await?;
    let result = phases(&mut rig, disk.path(), common.cycles.unwrap_or(3)).await;
    if matches!(result, Err(CampaignError::Violation(_))) {
        work.keep();
    }
    result
}

async fn phases(rig: &mut Rig, disk: &Path, count: usize) -> Result<()> {
    let filler = Filler { path: disk.join("filler") };
    let mut server = rig.launch.start().await?;
    for cycle in 0..count {
        let summary = guarded(rig, &mut server, &filler, cycle).await?;
        let checked = rig.resend_and_check(&server).await?;
        println!("guarded {}: {summary}; {} answers equal the model's", cycle + 1, checked.answers);
    }
    server.terminate().await?;
    rig.launch.flags.retain(|flag| flag != MIN_FREE);
    rig.launch.flags.push("--min-free-bytes=0".to_owned());
    server = rig.launch.start().await?;
    let summary = unguarded(rig, &mut server, &filler, count).await?;
    let checked = rig.resend_and_check(&server).await?;
    println!("unguarded: {summary}; {} answers equal the model's", checked.answers);
    server.terminate().await?;
    let server = rig.launch.start().await?;
    let answers = rig.check(&server).await?;
    let cells = rig.verify().await?;
    server.terminate().await?;
    println!(
        "disk-full: {count} times guarded, once unguarded: {answers} answers equal the model's after a restart, and {cells} cells are \
         verified, of {} events; nothing \
         acknowledged was lost",
        rig.shared.ledger.borrow().len(),
    );
    Ok(())
}

async fn guarded(rig: &mut Rig, server: &mut Server, filler: &Filler, cycle: usize) -> Result<String> {
    let pace = Pace { reconnect: true, ..Pace::steady(cycle) };
    let load = Load::start(&rig.shared, server.address, pace, &mut rig.rng);
    tokio::time::sleep(Duration::from_millis(700)).await;
    filler.fill(LEFT_BYTES)?;
    let not_ready = wait_for_readyz(server, NOTICE, "the server stays ready on a full disk", |ready| ready.status == 503).await?;
    if not_ready.response.retry_after.is_none() {
        return Err(violation("/readyz answers 503 without Retry-After"));
    }
    // Requests admitted before may still succeed.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let (before, refused_before) = (acknowledged(rig), refused(rig));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (accepted, refused_now) = (acknowledged(rig) - before, refused(rig) - refused_before);
    if accepted > 0 || refused_now == 0 {
        return Err(violation(format!(
            "on a full disk {accepted} events were accepted, and {refused_now} requests answered with 503"
        )));
    }
    filler.remove()?;
    let ready = wait_for_readyz(server, RECOVERY, "the server does not become ready again", |ready| ready.status == 200).await?;
    let before = acknowledged(rig);
    tokio::time::sleep(Duration::from_millis(700)).await;
    let again = acknowledged(rig) - before;
    let tally = load.finish().await;
    server.check_alive()?;
    if again == 0 || tally.without_retry_after > 0 {
        return Err(violation(format!(
            "{again} events accepted afterwards; {} responses without Retry-After",
            tally.without_retry_after
        )));
    }
    Ok(format!(
        "full, not ready after {} ms, {refused_now} requests refused with 503 and Retry-After, none accepted; ready {} ms after space was \
         freed, {again} events accepted at once; responses in total: {}",
        not_ready.took.as_millis(),
        ready.took.as_millis(),
        status_counts(&tally.by_status),
    ))
}

/// Sends bulky events until the log has filled its preallocated segments, frees space, and expects
/// the server to resume.
async fn unguarded(rig: &mut Rig, server: &mut Server, filler: &Filler, cycle: usize) -> Result<String> {
    filler.fill(0)?;
    let pace = Pace { reconnect: true, bulk: 7, ..Pace::fast(cycle) };
    let load = Load::start(&rig.shared, server.address, pace, &mut rig.rng);
    let began = Instant::now();
    while refused(rig) < 100 {
        server.check_alive()?;
        filler.fill(0)?;
        tokio::time::sleep(Duration::from_millis(50)).await;
        if began.elapsed() > FILL {
            return Err(harness("the log does not fill up"));
        }
    }
    let full_after = began.elapsed();
    tokio::time::sleep(Duration::from_secs(3)).await;
    server.check_alive()?;
    let accepted = acknowledged(rig);
    filler.remove()?;
    let removed = Instant::now();
    while acknowledged(rig) < accepted + 200 {
        server.check_alive()?;
        tokio::time::sleep(Duration::from_millis(20)).await;
        if removed.elapsed() > Duration::from_secs(15) {
            return Err(violation(format!(
                "the server accepts no events although space is free again; its log:\n    {}",
                server.log().tail()
            )));
        }
    }
    let took = removed.elapsed();
    let tally = load.finish().await;
    wait_for_readyz(server, RECOVERY, "the server does not become ready again", |ready| ready.status == 200).await?;
    if tally.without_retry_after > 0 {
        return Err(violation(format!("{} responses with 503 and without Retry-After", tally.without_retry_after)));
    }
    Ok(format!(
        "no byte free, log full after {} ms; accepts events {} ms after space was freed; responses in total: {}",
        full_after.as_millis(),
        took.as_millis(),
        status_counts(&tally.by_status),
    ))
}

fn status_counts(by_status: &std::collections::BTreeMap<u16, usize>) -> String {
    let parts: Vec<String> = by_status.iter().map(|(status, count)| format!("{count} × {status}")).collect();
    parts.join(", ")
}

fn acknowledged(rig: &Rig) -> usize {
    rig.shared.tally.borrow().acknowledged
}

fn refused(rig: &Rig) -> usize {
    rig.shared.tally.borrow().by_status.get(&503).copied().unwrap_or(0)
}

struct Readiness {
    response: Response,
    took: Duration,
}

/// Polls `/readyz` until the response satisfies `fits`; `or` describes the violation otherwise.
async fn wait_for_readyz(server: &mut Server, limit: Duration, or: &str, fits: impl Fn(&Response) -> bool) -> Result<Readiness> {
    let began = Instant::now();
    let request = Request { method: "GET", path: "/readyz", credential: Credential::None, body: None };
    loop {
        server.check_alive()?;
        let response = Connection::open(server.address).await?.send(&request).await?;
        if fits(&response) {
            return Ok(Readiness { response, took: began.elapsed() });
        }
        if began.elapsed() > limit {
            let log = server.log().tail();
            return Err(violation(format!("{or}: /readyz answers {}: {}; its log:\n    {log}", response.status, response.body)));
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A file that fills the disk.
struct Filler {
    path: PathBuf,
}

impl Filler {
    /// Grows the file until only `left_bytes` are free.
    fn fill(&self, left_bytes: u64) -> Result<()> {
        let mut file = File::options().append(true).create(true).open(&self.path)?;
        for chunk_bytes in [1 << 20, 4096] {
            let chunk = vec![0xA5; chunk_bytes];
            while free_bytes(&self.path)? >= left_bytes.max(1) {
                match file.write_all(&chunk) {
                    Ok(()) => {}
                    Err(error) if error.kind() == ErrorKind::StorageFull => break,
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    fn remove(&self) -> Result<()> {
        Ok(fs::remove_file(&self.path)?)
    }
}

fn free_bytes(path: &Path) -> Result<u64> {
    let space = rustix::fs::statvfs(path).map_err(|error| harness(error.to_string()))?;
    Ok(space.f_bavail * space.f_frsize)
}
