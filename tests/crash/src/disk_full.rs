//! `disk-full`: the disk is filled up under load, and emptied again.
//!
//! - *Guarded*: less is left than the server wants to have left. It refuses events (503, `Retry-After`), is not ready, and recovers
//!   by itself once there is room.
//! - *Unguarded*: it wants nothing left, and the disk is filled to the last byte. Whatever it answers, it does not end, and does not
//!   forget what it acknowledged.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::arguments::Common;
use crate::http::{Connection, Credential, Reply, Request};
use crate::load::{Load, Pace};
use crate::mount::{self, Mounted};
use crate::rig::{Rig, WorkDir};
use crate::server::Server;
use crate::trouble::{Result, Trouble, harness, violation};

const IMAGE_BYTES: u64 = 640 << 20;
/// What the guarded server wants to have left, and what is left to it.
const MIN_FREE: &str = "--min-free-bytes=32MiB";
const LEFT_BYTES: u64 = 8 << 20;
/// How long it may take until the server notices something.
const NOTICE: Duration = Duration::from_secs(5);
/// How long it may take until what failed on a full disk is tried again.
const RECOVERY: Duration = Duration::from_secs(15);
/// How long filling up what the log has prepared may take.
const FILL: Duration = Duration::from_secs(90);

/// Runs the campaign.
///
/// # Errors
/// A violation, or the harness fails.
pub async fn run(common: &Common) -> Result<()> {
    let mut work = WorkDir::make(common)?;
    let (image, path) = (work.path().join("disk.img"), work.path().join("disk"));
    let on_loop = mount::make_image(&image, IMAGE_BYTES).and_then(|()| Mounted::image(&image, &path));
    let disk = match on_loop {
        Err(Trouble::Skipped(why)) => {
            println!("no ext4 on a loop device, so in memory: {why}");
            Mounted::memory(&path, IMAGE_BYTES)?
        }
        disk => disk?,
    };
    let mut rig = Rig::make(common, disk.path().join("data"), &["--checkpoint-interval=1s", MIN_FREE]).await?;
    let result = phases(&mut rig, disk.path(), common.cycles.unwrap_or(3)).await;
    if matches!(result, Err(Trouble::Violation(_))) {
        work.keep();
    }
    result
}

async fn phases(rig: &mut Rig, disk: &Path, count: usize) -> Result<()> {
    let filler = Filler { path: disk.join("filler") };
    let mut server = rig.launch.start().await?;
    for cycle in 0..count {
        let what = guarded(rig, &mut server, &filler, cycle).await?;
        let checked = rig.settle_and_check(&server).await?;
        println!("guarded {}: {what}; {} answers equal the model's", cycle + 1, checked.answers);
    }
    server.terminate().await?;
    rig.launch.flags.retain(|flag| flag != MIN_FREE);
    rig.launch.flags.push("--min-free-bytes=0".to_owned());
    server = rig.launch.start().await?;
    let what = unguarded(rig, &mut server, &filler, count).await?;
    let checked = rig.settle_and_check(&server).await?;
    println!("unguarded: {what}; {} answers equal the model's", checked.answers);
    server.terminate().await?;
    let server = rig.launch.start().await?;
    let answers = rig.check(&server).await?;
    server.terminate().await?;
    println!(
        "disk-full: {count} times guarded, once unguarded: {answers} answers equal the model's after a restart, of {} events; nothing \
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
    let noticed = until(server, NOTICE, "it stays ready on a full disk", |ready| ready.status == 503).await?;
    if noticed.reply.retry_after.is_none() {
        return Err(violation("/readyz answers 503 without Retry-After"));
    }
    // What was admitted before may still be answered.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let (before, refused_before) = (acknowledged(rig), refused(rig));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (taken, turned_away) = (acknowledged(rig) - before, refused(rig) - refused_before);
    if taken > 0 || turned_away == 0 {
        return Err(violation(format!("on a full disk {taken} events were taken, {turned_away} requests answered 503")));
    }
    filler.remove()?;
    let ready = until(server, RECOVERY, "it does not get ready again", |ready| ready.status == 200).await?;
    let before = acknowledged(rig);
    tokio::time::sleep(Duration::from_millis(700)).await;
    let again = acknowledged(rig) - before;
    let tally = load.finish().await;
    server.is_alive()?;
    if again == 0 || tally.without_retry_after > 0 {
        return Err(violation(format!(
            "{again} events taken afterwards; {} answers without Retry-After",
            tally.without_retry_after
        )));
    }
    Ok(format!(
        "full, not ready after {} ms, {turned_away} requests refused with 503 and Retry-After, none taken; ready {} ms after there was \
         room, {again} events taken at once; all in all {}",
        noticed.took.as_millis(),
        ready.took.as_millis(),
        shown(&tally.by_status),
    ))
}

/// Bulky events until the log has used up what it had prepared, and goes on once there is room.
async fn unguarded(rig: &mut Rig, server: &mut Server, filler: &Filler, cycle: usize) -> Result<String> {
    filler.fill(0)?;
    let pace = Pace { reconnect: true, bulk: 7, ..Pace::fast(cycle) };
    let load = Load::start(&rig.shared, server.address, pace, &mut rig.rng);
    let began = Instant::now();
    while refused(rig) < 100 {
        server.is_alive()?;
        filler.fill(0)?;
        tokio::time::sleep(Duration::from_millis(50)).await;
        if began.elapsed() > FILL {
            return Err(harness("the log does not get full"));
        }
    }
    let full_after = began.elapsed();
    tokio::time::sleep(Duration::from_secs(3)).await;
    server.is_alive()?;
    let taken = acknowledged(rig);
    filler.remove()?;
    let removed = Instant::now();
    while acknowledged(rig) < taken + 200 {
        server.is_alive()?;
        tokio::time::sleep(Duration::from_millis(20)).await;
        if removed.elapsed() > Duration::from_secs(15) {
            return Err(violation(format!(
                "it takes no events though there is room again; it said:\n    {}",
                server.log().tail()
            )));
        }
    }
    let took = removed.elapsed();
    let tally = load.finish().await;
    until(server, RECOVERY, "it does not get ready again", |ready| ready.status == 200).await?;
    if tally.without_retry_after > 0 {
        return Err(violation(format!("{} answers 503 without Retry-After", tally.without_retry_after)));
    }
    Ok(format!(
        "no byte left, log full after {} ms; takes events {} ms after there was room; all in all {}",
        full_after.as_millis(),
        took.as_millis(),
        shown(&tally.by_status),
    ))
}

fn shown(by_status: &std::collections::BTreeMap<u16, usize>) -> String {
    let parts: Vec<String> = by_status.iter().map(|(status, count)| format!("{count} × {status}")).collect();
    parts.join(", ")
}

fn acknowledged(rig: &Rig) -> usize {
    rig.shared.tally.borrow().acknowledged
}

fn refused(rig: &Rig) -> usize {
    rig.shared.tally.borrow().by_status.get(&503).copied().unwrap_or(0)
}

struct Noticed {
    reply: Reply,
    took: Duration,
}

/// Asks `/readyz` until it answers as it should.
async fn until(server: &mut Server, limit: Duration, or: &str, fits: impl Fn(&Reply) -> bool) -> Result<Noticed> {
    let began = Instant::now();
    let request = Request { method: "GET", path: "/readyz", credential: Credential::None, body: None };
    loop {
        server.is_alive()?;
        let reply = Connection::open(server.address).await?.send(&request).await?;
        if fits(&reply) {
            return Ok(Noticed { reply, took: began.elapsed() });
        }
        if began.elapsed() > limit {
            let said = server.log().tail();
            return Err(violation(format!("{or}: /readyz answers {}: {}; it said:\n    {said}", reply.status, reply.body)));
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A file that takes up what is free.
struct Filler {
    path: PathBuf,
}

impl Filler {
    /// Grows until only so much is left.
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
