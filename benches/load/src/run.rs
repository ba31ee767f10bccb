//! A run, from the flags to the results.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::SystemTime;

use chrono::{DateTime, SecondsFormat, Utc};

use super::args::LoadArgs;
use super::compare::{self, Comparison};
use super::crowd::{Crowd, CrowdSizes};
use super::destinations::destinations;
use super::events::EventWriter;
use super::failure::Failure;
use super::ledger::Ledger;
use super::page;
use super::process::{allow_many_files, keep_files_private, print, since_epoch};
use super::progress::ProgressLine;
use super::ramp::{NextStep, Ramp, RampStep, RateRange};
use super::report::{LoadReport, LoadSettings};
use super::sending::{EarlyEnd, SendPlan, Sender, Sent};
use super::spread::{Destination, Spread};
use super::usage::{ServerProcess, ServerUsage};
use super::verify::{self, Counts};
use super::visitor::Target;

/// The user ids and external ids of a run begin with this prefix and its start time, so that runs
/// don't share ids.
const PREFIX: &str = "load";

/// Runs the program.
pub(crate) fn run(args: &LoadArgs) -> Result<ExitCode, Failure> {
    keep_files_private();
    if let Some(files) = &args.output.compare {
        return compare_files(files, args.output.json);
    }
    args.check()?;
    let process = args.crowd.pid.map(ServerProcess::new).transpose()?;
    allow_many_files();
    let (host, address, base) = place(args)?;
    let progress = ProgressLine::new(args.output.progress);
    let (destinations, are_new) = destinations(args, &progress)?;
    let before = counts_before(args, &destinations, are_new)?;
    let target = Arc::new(target(args, destinations, host, base)?);
    let mut sender = Sender { target: Arc::clone(&target), address, crowd: None, process, progress, next_number: 0 };
    sender.try_each_kind()?;
    sender.crowd = Crowd::gather(sizes(args), &target, address)?;
    let (mut report, end) = match args.ramp.ramp {
        Some(range) => ramp_up(args, range, &mut sender)?,
        None => {
            let plan = plan(args, args.rate);
            let sent = sender.send(&plan)?;
            (report_of(&plan, &sent), sent.ended_early)
        }
    };
    report.ended_early = end.map(|end| end.reason().to_owned());
    report.settings = settings(args, &target);
    if before.is_some() {
        sender.progress.say("reading the counts");
    }
    let after = before.as_ref().map(|_| verify::counts(&args.url, &target.destinations));
    if let (Some(before), Some(Ok(after))) = (&before, &after) {
        report.verified = Some(verify::compare(before, after, &target.ledger, &target.destinations));
    }
    sender.progress.clear();
    write_results(args, &report)?;
    if let Some(Err(failure)) = after {
        return Err(Failure(format!("the counts could not be verified: {failure}")));
    }
    verdict(&report, end)
}

fn compare_files(files: &[PathBuf], json: bool) -> Result<ExitCode, Failure> {
    let [a, b] = files else { return Err(Failure("--compare needs two files".into())) };
    let comparison = Comparison::new(&compare::read(a)?, &compare::read(b)?);
    print(json, &comparison, || comparison.describe())?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the reason why the run failed, if it did.
fn verdict(report: &LoadReport, end: Option<EarlyEnd>) -> Result<ExitCode, Failure> {
    if end == Some(EarlyEnd::ServerGone) {
        return Err(Failure(EarlyEnd::ServerGone.reason().into()));
    }
    if report.all.requests == report.all.unexpected {
        return Err(Failure("no request was answered as expected".into()));
    }
    let has_knee = report.ramp.as_ref().is_none_or(|ramp| ramp.knee.is_some());
    let agrees = report.verified.as_ref().is_none_or(|verified| verified.agrees);
    Ok(if agrees && has_knee { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn write_results(args: &LoadArgs, report: &LoadReport) -> Result<(), Failure> {
    print(args.output.json, report, || report.describe())?;
    if let Some(file) = &args.output.html {
        let at = DateTime::<Utc>::from(SystemTime::now()).to_rfc3339_opts(SecondsFormat::Millis, true);
        let page = page::page(report, &at);
        std::fs::write(file, page).map_err(|error| Failure::new(file.display(), error))?;
    }
    Ok(())
}

/// Reads the counts of all projects, if there are tokens.
fn counts_before(args: &LoadArgs, destinations: &[Destination], are_new: bool) -> Result<Option<Vec<Counts>>, Failure> {
    if args.raw.raw || destinations.iter().any(|it| it.project.is_none()) {
        return Ok(None);
    }
    if are_new {
        return Ok(Some(vec![Counts::default(); destinations.len()]));
    }
    verify::counts(&args.url, destinations).map(Some)
}

fn plan(args: &LoadArgs, rate: Option<f64>) -> SendPlan {
    SendPlan { rate, connections: args.connections, threads: args.threads, warm_up: args.warm_up, duration: args.duration }
}

fn sizes(args: &LoadArgs) -> CrowdSizes {
    CrowdSizes { idle: args.crowd.idle, streams: args.crowd.streams, dashboards: args.crowd.dashboards }
}

fn settings(args: &LoadArgs, target: &Target) -> LoadSettings {
    LoadSettings {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        mix: target.mix.describe(),
        batch: args.batch(),
        users: target.spread.users(),
        projects: target.destinations.len(),
        hot: args.spread.hot,
        duplicates: args.duplicates,
        idle: args.crowd.idle,
        streams: args.crowd.streams,
        dashboards: args.crowd.dashboards,
        threads: args.threads,
    }
}

#[expect(clippy::cast_precision_loss, reason = "events of a run")]
fn report_of(plan: &SendPlan, sent: &Sent) -> LoadReport {
    let mut report = LoadReport::new(&sent.measured, sent.lasting, plan.connections as usize, plan.rate);
    let seconds = sent.lasting.as_secs_f64().max(0.001);
    let events = sent.measured.total.together().events as f64;
    report.idle = sent.crowd.idle.clone();
    report.streams = sent.crowd.streams.clone();
    report.server = sent.usage.map(|(before, after)| ServerUsage::between(before, after, seconds, events));
    report
}

/// Runs steps until one is not sustained. Reports the knee, or the first step if there is no knee.
fn ramp_up(args: &LoadArgs, range: RateRange, sender: &mut Sender) -> Result<(LoadReport, Option<EarlyEnd>), Failure> {
    let mut ramp = Ramp::new(args.ramp.max_p99);
    let mut chosen: Option<LoadReport> = None;
    let mut end = None;
    'rates: for rate in range.steps(args.ramp.steps) {
        loop {
            let plan = plan(args, Some(rate));
            let sent = sender.send(&plan)?;
            let report = report_of(&plan, &sent);
            end = sent.ended_early;
            if end.is_some() {
                chosen = chosen.or(Some(report));
                break 'rates;
            }
            let all = &report.all;
            let next = ramp.add(RampStep {
                target_rate: rate,
                achieved_rate: all.requests_per_second * (1.0 - all.failed()),
                failed: all.failed(),
                p50_ms: all.latency("p50"),
                p99_ms: all.latency("p99"),
                not_sustained: None,
            });
            if chosen.is_none() || next == NextStep::Raise {
                chosen = Some(report);
            }
            match next {
                NextStep::Raise => break,
                NextStep::Repeat => {}
                NextStep::End => break 'rates,
            }
        }
    }
    let mut report = chosen.unwrap_or_default();
    report.mode = "ramp".to_owned();
    report.ramp = Some(ramp);
    Ok((report, end))
}

/// The header `Host`, the address and the path of the server.
fn place(args: &LoadArgs) -> Result<(String, SocketAddr, String), Failure> {
    let wrong = || Failure(format!("--url must be http://HOST[:PORT]/PATH, not {:?}", args.url));
    let uri: ureq::http::Uri = args.url.parse().map_err(|_| wrong())?;
    let host = uri.authority().filter(|_| uri.scheme_str() == Some("http")).ok_or_else(wrong)?;
    let name = (host.host().trim_matches(['[', ']']), host.port_u16().unwrap_or(80));
    let address = name.to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
    let address = address.ok_or_else(|| Failure(format!("--url: {host} was not found")))?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    Ok((host.to_string(), address, if args.raw.raw { path } else { path.trim_end_matches('/') }.to_owned()))
}

fn target(args: &LoadArgs, destinations: Vec<Destination>, host: String, base: String) -> Result<Target, Failure> {
    let spread = Spread::new(destinations.len(), args.users, args.spread.hot);
    let events = EventWriter::new(&format!("{PREFIX}{:x}", since_epoch().as_millis()), args.duplicates > 0);
    let body = match &args.raw.body {
        Some(file) => std::fs::read(file).map_err(|error| Failure::new("--body", error))?,
        None => {
            let mut body = Vec::new();
            events.write(0, spread.users_of(0), &mut body);
            body
        }
    };
    let key = destinations.first().map_or("", |first| &first.key);
    let key = if key.is_empty() { String::new() } else { format!("x-service-pk: {key}\r\n") };
    let length = body.len();
    let head = format!(
        "POST {base} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n{key}content-length: {length}\r\n\r\n"
    );
    Ok(Target {
        mix: args.mix(),
        ledger: Ledger::new(destinations.len(), spread),
        events,
        destinations,
        spread,
        batch: u64::from(args.batch()),
        duplicates: u64::from(args.duplicates),
        expect: args.expect,
        host,
        base,
        fixed: [head.into_bytes(), body].concat(),
        next_event: AtomicU64::new(0),
    })
}
