//! `power`: simulates power cuts under load, and starts another server from the state of the disk.
//!
//! The data directory is on an ext4 file system in an image file, on a loop device with direct I/O.
//! The image therefore contains exactly what the file system has written to its device, and nothing
//! that is only in the page cache, as after a power cut. The campaign stops the server (SIGSTOP),
//! copies the image, mounts the copy (which replays its journal), and starts a second server on it.
//! The copy must be consistent: it is repeated if the device wrote meanwhile.
//!
//! The write cache of a disk is not simulated: data that was written but not flushed survives.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::arguments::Common;
use crate::error::{CampaignError, Result, harness};
use crate::load::{Load, Pace};
use crate::mount::{self, Mount};
use crate::resend;
use crate::rig::{Rig, WorkDir};
use crate::server::Server;

/// Cycles of a full campaign.
const CYCLES: usize = 20;
/// Range of the time under load before the cut, in milliseconds.
const LOAD_MS: (usize, usize) = (200, 3_000);
/// Size of the image: enough for the log and the store.
const IMAGE_BYTES: u64 = 1 << 30;
/// Maximum delay of responses that were sent before the cut.
const DRAIN: Duration = Duration::from_millis(50);
/// Maximum number of attempts to copy the image.
const COPIES: usize = 50;

/// Runs the campaign.
///
/// # Errors
/// A violation, or the harness fails.
pub async fn run(common: &Common) -> Result<()> {
    let mut work = WorkDir::make(common)?;
    let paths = Paths::of(work.path());
    mount::make_image(&paths.image, IMAGE_BYTES)?;
    let disk = Mount::image(&paths.image, &paths.disk)?;
    let mut rig = Rig::make(common, disk.path().join("data"), &["--min-free-bytes=16MiB"]).await?;
    let result = cycles(&mut rig, &disk, &paths, common.cycles.unwrap_or(CYCLES)).await;
    if matches!(result, Err(CampaignError::Violation(_))) {
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

async fn cycles(rig: &mut Rig, disk: &Mount, paths: &Paths, count: usize) -> Result<()> {
    let mut server = rig.launch.start().await?;
    let (mut unanswered, mut on_disk) = (0, 0);
    for cycle in 0..count {
        let before = rig.shared.ledger.borrow().len();
        let load_ms = LOAD_MS.0 + rig.rng.below(LOAD_MS.1 - LOAD_MS.0);
        let load = Load::start(&rig.shared, server.address, Pace::steady(cycle), &mut rig.rng);
        load.run_up(Duration::from_millis(load_ms as u64)).await;
        server.freeze()?;
        // Responses that the server has sent count as acknowledged: wait until they arrive.
        tokio::time::sleep(DRAIN).await;
        let pending = rig.shared.ledger.borrow().pending();
        let tries = copy_consistently(disk, paths)?;
        // Clients send nothing new: each is in the middle of a request, or sees that the load has
        // ended.
        server.thaw()?;
        load.finish().await;
        rig.shared.findings.check()?;
        let recovered = recover_from_copy(rig, paths, &pending).await?;
        // The first server, which was not interrupted, gets the same events.
        rig.resend_pending(&server).await?;
        let events = rig.shared.ledger.borrow().len();
        println!(
            "cycle {:>2}: cut after {load_ms} ms: {} acknowledged, {} in flight ({} of these were on the disk){}; started in {} ms; \
             {} answers equal the model's, of {events} events; {} cells are verified",
            cycle + 1,
            events - before - pending.len(),
            pending.len(),
            recovered.on_disk,
            if tries > 1 { format!("; copied at attempt {tries}") } else { String::new() },
            recovered.started_in.as_millis(),
            recovered.answers,
            recovered.cells,
        );
        unanswered += pending.len();
        on_disk += recovered.on_disk;
        server = maybe_restart(rig, server).await?;
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

struct Recovered {
    started_in: Duration,
    on_disk: u64,
    answers: usize,
    cells: u64,
}

/// Copies the image, and returns the number of attempts. The server is stopped, but the kernel may
/// still write.
fn copy_consistently(disk: &Mount, paths: &Paths) -> Result<usize> {
    for tried in 1..=COPIES {
        let before = disk.writes()?;
        mount::copy_sparse(&paths.image, &paths.image_of_cut)?;
        if before.in_progress == 0 && disk.writes()? == before {
            return Ok(tried);
        }
    }
    Err(harness("the disk is never idle"))
}

/// Starts a server on the copy: acknowledged events must be present, and all others, sent again,
/// counted once.
async fn recover_from_copy(rig: &mut Rig, paths: &Paths, pending: &[usize]) -> Result<Recovered> {
    let cut = Mount::image(&paths.image_of_cut, &paths.disk_of_cut)?;
    let mut launch = rig.launch.clone();
    launch.data_dir = cut.path().join("data");
    let server = launch.start().await?;
    let resent = resend::send_again(server.address, &rig.shared.tenant, &rig.shared.ledger, pending).await?;
    let answers = rig.check(&server).await?;
    let cells = rig.verify_with(&launch).await?;
    let started_in = server.started_in;
    server.terminate().await?;
    cut.unmount()?;
    std::fs::remove_file(&paths.image_of_cut)?;
    Ok(Recovered { started_in, on_disk: resent.duplicates, answers, cells })
}

/// Restarts the server with other flags, in 30 % of the cycles.
async fn maybe_restart(rig: &mut Rig, server: Server) -> Result<Server> {
    if !rig.rng.chance(30) {
        return Ok(server);
    }
    rig.shuffle_flags();
    server.terminate().await?;
    rig.launch.start().await
}
