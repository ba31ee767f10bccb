//! Measures the archive with events in the format of `POST /track`, one per line: bytes per event,
//! rows per second, memory.
//!
//! `measure FILE [SEAL_EVENTS] [none|sent|all] [MIB]`: seals this many events at a time (262,144);
//! without `external_id`, with the sent ones, or with a new one for each event; with row groups of
//! this size. `user_agent` and `ip` replace the client's.

#![allow(clippy::unwrap_used, reason = "a measurement: a panic is a failed one")]

use std::error::Error;
use std::io::BufRead;
use std::time::Instant as Clock;

use headcount_archive::{
    Archive, ArchiveError, Columns, CompactOptions, Currencies, Row, SealOptions, Sealer, Selection, merge_next,
};
use headcount_domain::hosts::HostList;
use headcount_domain::intake::admission::{Client, Sender, Verdict, admit};
use headcount_domain::intake::client_address::ClientAddress;
use headcount_domain::intake::policy::{BotPolicy, Policy, Rates, SignalsPolicy};
use headcount_domain::intake::submission::Submission;
use headcount_domain::time::Month;
use headcount_domain::{Currency, Instant, OrganizationId, ProjectId, Timezone, agent};
use serde::Deserialize;

const PROJECT: ProjectId = ProjectId(1);
const CURRENCIES: Currencies = Currencies { project: Currency::USD, organization: Currency::USD };

#[derive(Deserialize)]
struct Sent {
    user_agent: Option<String>,
    ip: Option<String>,
}

/// The peak memory of the process, in KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

fn policy() -> Policy {
    Policy {
        project: PROJECT,
        organization: OrganizationId(1),
        currency: Currency::USD,
        organization_currency: Currency::USD,
        rates: Rates::new().into(),
        timezone: Timezone::UTC,
        bots: BotPolicy::Record,
        signals: SignalsPolicy::Record,
        cookieless: true,
        server_only_revenue: false,
        no_referrers: HostList::default(),
    }
}

/// Creates the row of a line. Events are received when they happen.
fn row(line: &str, position: u64, ids: &str) -> Result<Row, Box<dyn Error>> {
    let sent: Sent = serde_json::from_str(line)?;
    let agent = agent::parse(sent.user_agent.as_deref().unwrap_or_default());
    let client = Client {
        sender: Sender::Server,
        address: sent.ip.as_deref().map(ClientAddress::parse),
        user_agent: sent.user_agent.as_deref(),
        country: None,
        agent: &agent,
        gpc: false,
        dnt: false,
        salt: Some([7; 16]),
    };
    let far = Instant(4_000_000_000_000);
    let verdict = Submission::read(line.as_bytes(), |submission| admit(submission, &policy(), &client, far))??;
    let Verdict::Record { mut event, .. } = verdict else { return Err("dropped".into()) };
    event.received = event.time;
    let uuid = || format!("{:032x}", (u128::from(position) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
    event.external_id = match ids {
        "none" => None,
        "all" => Some(uuid().into()),
        _ => event.external_id,
    };
    Ok(Row::new(position, *event, CURRENCIES))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which file?")?;
    let seal_events: usize = arguments.next().map_or(Ok(262_144), |events| events.parse())?;
    let ids = arguments.next().unwrap_or_else(|| "sent".into());
    let mut options = SealOptions::default();
    if let Some(mib) = arguments.next() {
        options.writer.row_group_bytes = mib.parse::<usize>()? << 20;
    }
    let compact = CompactOptions { seal: options, ..CompactOptions::default() };
    let dir = std::env::temp_dir().join(format!("headcount-archive-{}", std::process::id()));
    let mut archive = Archive::open(&dir, PROJECT)?;
    let lines = std::io::BufReader::new(std::fs::File::open(path)?).lines();
    let (mut rows, mut events, mut input, mut sealing, mut own) = (Vec::new(), 0, 0, 0.0, 0);
    let mut flush = |rows: &mut Vec<Row>, archive: &mut Archive| -> Result<(), ArchiveError> {
        let (before, began) = (peak_kib(), Clock::now());
        let mut sealer = Sealer::new(archive, options);
        rows.iter().try_for_each(|row| sealer.push(row))?;
        sealer.finish(rows.last().map_or(0, |row| row.position))?;
        sealing += began.elapsed().as_secs_f64();
        own = own.max(peak_kib() - before);
        rows.clear();
        Ok(())
    };
    for line in lines {
        let line = line?;
        events += 1;
        input += line.len() + 1;
        rows.push(row(&line, events, &ids)?);
        if rows.len() == seal_events {
            flush(&mut rows, &mut archive)?;
        }
    }
    flush(&mut rows, &mut archive)?;
    report("sealed", &archive, events);
    println!(
        "{:.0} B of JSON an event; {:.0} rows/s sealed, which took up to {own} KiB more",
        input as f64 / events as f64,
        events as f64 / sealing
    );
    let began = Clock::now();
    while merge_next(&mut archive, Month(i32::MAX), &compact, &|| true)? {}
    println!("merged in {:.2} s", began.elapsed().as_secs_f64());
    report("merged", &archive, events);
    let began = Clock::now();
    let mut read = 0;
    archive.for_each_row(0, |_| {
        read += 1;
        Ok::<_, ArchiveError>(())
    })?;
    println!("{:.0} rows/s read back as events", f64::from(read) / began.elapsed().as_secs_f64());
    let (began, mut scanned) = (Clock::now(), 0);
    for entry in archive.manifest().files() {
        let selection = Selection::all(Columns::Named(&["day", "name"]));
        archive.file(entry)?.batches(&selection).try_for_each(|batch| batch.map(|batch| scanned += batch.num_rows()))?;
    }
    println!("{:.0} rows/s of two columns; peak {} KiB", scanned as f64 / began.elapsed().as_secs_f64(), peak_kib());
    println!("{}", archive.dir().display());
    Ok(())
}

fn report(what: &str, archive: &Archive, events: u64) {
    let files = archive.manifest().files();
    let bytes: u64 = files.iter().map(|file| file.bytes).sum();
    println!("{what}: {events} events, {} files, {bytes} bytes, {:.1} B an event", files.len(), bytes as f64 / events as f64);
}
