//! `power`: the server's file system is cut off in the middle of its work, and another server goes on from what is on its disk.
//!
//! The data lies in an ext4 in an image file, on a loop device with direct I/O. So the image holds what the file system has written
//! to its device, and nothing else: what is only in the page cache isn't in it, as after a power cut. The server is stopped
//! (SIGSTOP), the image copied, the copy mounted (which replays its journal), and a second server started on it. The copy must be
//! of one moment: it is taken again if the device has written meanwhile.
//!
//! A disk's own cache is not simulated: what was written, though not flushed, is there.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::arguments::Common;
use crate::load::{Load, Pace};
use crate::mount::{self, Mounted};
use crate::rig::{Rig, WorkDir};
use crate::server::Server;
use crate::settle;
use crate::trouble::{Result, Trouble, harness};

/// Cycles of a full campaign.
const CYCLES: usize = 20;
/// When the cut comes, in milliseconds of load.
const LOAD_MS: (usize, usize) = (200, 3_000);
/// Room for the log's segments, and what is made of them.
const IMAGE_BYTES: u64 = 1 << 30;
/// How long answers that were sent before the cut may take to arrive.
const DRAIN: Duration = Duration::from_millis(50);
/// How often a copy is tried again.
const COPIES: usize = 50;

/// Runs the campaign.
///
/// # Errors
/// A violation, or the harness fails.
pub async fn run(common: &Common) -> Result<()> {
    let mut work = WorkDir::make(common)?;
    let paths = Paths::of(work.path());
    mount::make_image(&paths.image, IMAGE_BYTES)?;
    let disk = Mounted::image(&paths.image, &paths.disk)?;
    let mut rig = Rig::make(common, disk.path().join("data"), &["--min-free-bytes=16MiB"]).await?;
    let result = cycles(&mut rig, &disk, &paths, common.cycles.unwrap_or(CYCLES)).await;
    if matches!(result, Err(Trouble::Violation(_))) {
        work.keep();
    }
    result
}

struct Paths {
    image: PathBuf,
    disk: PathBuf,
    image_of_cut: PathBuf,
    disk_of_cut: PathBuf,
}

impl Paths {
    fn of(work: &Path) -> Self {
        let [image, disk, image_of_cut, disk_of_cut] = ["disk.img", "disk", "cut.img", "cut"].map(|name| work.join(name));
        Self { image, disk, image_of_cut, disk_of_cut }
    }
}

async fn cycles(rig: &mut Rig, disk: &Mounted, paths: &Paths, count: usize) -> Result<()> {
    let mut server = rig.launch.start().await?;
    let (mut unanswered, mut on_disk) = (0, 0);
    for cycle in 0..count {
        let before = rig.shared.ledger.borrow().len();
        let load_ms = LOAD_MS.0 + rig.rng.below(LOAD_MS.1 - LOAD_MS.0);
        let load = Load::start(&rig.shared, server.address, Pace::steady(cycle), &mut rig.rng);
        load.run_up(Duration::from_millis(load_ms as u64)).await;
        server.freeze()?;
        // What the server has answered is promised, though the answer may still be on its way here.
        tokio::time::sleep(DRAIN).await;
        let pending = rig.shared.ledger.borrow().pending();
        let tries = copy_of_one_moment(disk, paths)?;
        // From here on nothing new is sent: all connections are in the middle of a request, or see that it is over.
        server.thaw()?;
        load.finish().await;
        rig.shared.findings.none()?;
        let up = go_on(rig, paths, &pending).await?;
        // The first server, for which nothing has happened, gets the same events.
        rig.settle(&server).await?;
        let events = rig.shared.ledger.borrow().len();
        println!(
            "cycle {:>2}: cut after {load_ms} ms: {} acknowledged, {} in flight ({} of these were on the disk){}; up in {} ms; \
             {} answers equal the model's, of {events} events",
            cycle + 1,
            events - before - pending.len(),
            pending.len(),
            up.on_disk,
            if tries > 1 { format!("; copied at the {tries}. try") } else { String::new() },
            up.started_in.as_millis(),
            up.answers,
        );
        unanswered += pending.len();
        on_disk += up.on_disk;
        server = restart(rig, server).await?;
    }
    let answers = rig.check(&server).await?;
    server.terminate().await?;
    println!(
        "power: {count} cuts, {} events, {unanswered} in flight at a cut ({on_disk} of these were on the disk): nothing acknowledged \
         was lost, nothing counted twice; {answers} answers of the server that was not cut off equal the model's",
        rig.shared.ledger.borrow().len(),
    );
    Ok(())
}

struct Up {
    started_in: Duration,
    on_disk: u64,
    answers: usize,
}

/// Copies the image. The server is stopped, but the kernel may still be writing.
fn copy_of_one_moment(disk: &Mounted, paths: &Paths) -> Result<usize> {
    for tried in 1..=COPIES {
        let before = disk.writes()?;
        mount::copy_sparse(&paths.image, &paths.image_of_cut)?;
        if before.under_way == 0 && disk.writes()? == before {
            return Ok(tried);
        }
    }
    Err(harness("the disk does not come to rest"))
}

/// Goes on from the copy: whatever was acknowledged at the cut is there, and all else, sent again, is counted once.
async fn go_on(rig: &mut Rig, paths: &Paths, pending: &[usize]) -> Result<Up> {
    let cut = Mounted::image(&paths.image_of_cut, &paths.disk_of_cut)?;
    let mut launch = rig.launch.clone();
    launch.data_dir = cut.path().join("data");
    let server = launch.start().await?;
    let settled = settle::send_again(server.address, &rig.shared.world, &rig.shared.ledger, pending).await?;
    let answers = rig.check(&server).await?;
    let started_in = server.started_in;
    server.terminate().await?;
    cut.unmount()?;
    std::fs::remove_file(&paths.image_of_cut)?;
    Ok(Up { started_in, on_disk: settled.duplicates, answers })
}

/// Now and then, with other flags.
async fn restart(rig: &mut Rig, server: Server) -> Result<Server> {
    if !rig.rng.chance(30) {
        return Ok(server);
    }
    rig.shuffle_flags();
    server.terminate().await?;
    rig.launch.start().await
}
