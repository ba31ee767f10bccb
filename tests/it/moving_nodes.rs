//! Three nodes over a broker, which are killed, stopped, halted and started again while others ask
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use headcount_domain::Instant as Moment;
use headcount_histories::Rng;
use serde_json::Value;
use tempfile::TempDir;

use crate::broker::Broker;
use crate::client::{Answer, Broken, Call, Connection};
use crate::cluster_nodes::{NAMES, Node, make};

/// How long a request may be refused, or a node may take to answer again.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long somebody may wait for a move: for the rest of one under way, and for a calm minute, on
/// a loaded machine.
const MOVE_PATIENCE: Duration = Duration::from_secs(400);
/// How long a node is waited for that seals.
const SEAL_PATIENCE: Duration = Duration::from_secs(6);
/// Often checkpoints, so that nodes also start with those of partitions that others had since.
const SETTINGS: [&str; 6] = ["--checkpoint-interval", "2s", "--log", "warn,headcount_cluster=info", "--log-format", "json"];
/// How long an owner is away that is replaced, in seconds: its leases end after 12.
const REPLACED_SECS: usize = 13;
/// One move in this many is none: the nodes stay as they are until partitions move to those that
/// have few, after a minute without changes.
const CALM_EACH: usize = 25;
const CALM: Duration = Duration::from_secs(60);
/// How long partitions move then.
const MOVES: Duration = Duration::from_secs(10);

/// The nodes, as those see them who ask.
pub(crate) struct MovingNodes {
    broker: Broker,
    dir: TempDir,
    /// What `cluster init` printed.
    made: Value,
    kind: Kind,
    /// Where nodes of [`Kind::WithFiles`] keep them.
    files: TempDir,
    /// Where each listens, or listened last.
    addresses: [Mutex<SocketAddr>; NAMES.len()],
    turns: Mutex<Turns>,
    turned: Condvar,
    counts: Counts,
}

/// What nodes are like.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Alike,
    /// Each has one of two versions, and the other one now and then when it is started again.
    OfTwoVersions,
    /// They keep files in one directory, and the brokers only what was sealed within a second.
    WithFiles,
}

/// When nodes move: when somebody waits for it.
#[derive(Default)]
struct Turns {
    begun: usize,
    waiting: usize,
    /// How many take part.
    participants: usize,
    /// Whether one of them has panicked.
    is_broken: bool,
}

/// Somebody for whom nodes move, until the end of the value.
struct Participant<'a>(&'a MovingNodes);

/// What happened.
#[derive(Default)]
struct Counts {
    kills: AtomicUsize,
    restarts: AtomicUsize,
    stops: AtomicUsize,
    halts: AtomicUsize,
    calms: AtomicUsize,
    refused: AtomicUsize,
    unreachable: AtomicUsize,
    unknown: AtomicUsize,
}

/// A partition whose owner is another node than before.
pub(crate) struct Move {
    pub(crate) at_ms: i64,
    pub(crate) partition: u16,
}

/// Moves the nodes.
struct Mover<'a> {
    shared: &'a MovingNodes,
    nodes: [Node; NAMES.len()],
    rng: Rng,
}

/// What a node does for a while.
#[derive(Clone, Copy)]
enum Absence {
    Killed,
    Halted,
}

fn add(count: &AtomicUsize) {
    count.fetch_add(1, Ordering::Relaxed);
}

impl MovingNodes {
    /// Makes a cluster, and starts its nodes. `None`: there is no broker.
    pub(crate) fn start(kind: Kind) -> Option<(Self, [Node; NAMES.len()])> {
        let [dir, files] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let broker = Broker::start(dir.path())?;
        let made = make(&broker, dir.path());
        let addresses = [(); 3].map(|()| Mutex::new(SocketAddr::from(([127, 0, 0, 1], 0))));
        let (turns, turned, counts) = <(Mutex<Turns>, Condvar, Counts)>::default();
        let nodes = Self { broker, dir, made, kind, files, addresses, turns, turned, counts };
        let started = [0, 1, 2].map(|place| nodes.start_node(place, kind == Kind::OfTwoVersions && place == 2));
        Some((nodes, started))
    }

    /// Starts a node, with the next version if `is_next`.
    fn start_node(&self, place: usize, is_next: bool) -> Node {
        let dir = self.dir.path();
        let log: File = OpenOptions::new().create(true).append(true).open(log_of(dir, NAMES[place])).unwrap();
        let files = format!("file://{}", self.files.path().display());
        let mut settings = SETTINGS.to_vec();
        if self.kind == Kind::WithFiles {
            settings.extend(["--files", &files, "--log-kept", "1s"]);
        }
        let node = Node::start_as(&self.broker, &dir.join(NAMES[place]), &settings, Stdio::from(log), is_next);
        *lock(&self.addresses[place]) = address_of(&node);
        node
    }

    /// Has each node seal what it has, and remove from the brokers what is sealed.
    pub(crate) fn seal(&self) {
        for (place, name) in NAMES.iter().enumerate() {
            let Ok(token) = std::fs::read_to_string(self.dir.path().join(name).join("operator-token")) else { continue };
            // A node that is away, or has just taken partitions over, does it the next time.
            drop(self.try_to_send(place, &Call::post("/admin/archive/seal").bearer(token.trim()), SEAL_PATIENCE));
        }
    }

    /// The directory where nodes keep files.
    pub(crate) fn files(&self) -> &Path {
        self.files.path()
    }

    /// Nodes move as long as somebody takes part.
    fn participant(&self) -> Participant<'_> {
        lock(&self.turns).participants += 1;
        Participant(self)
    }

    /// Whether somebody who took part has panicked.
    fn is_broken(&self) -> bool {
        lock(&self.turns).is_broken
    }

    /// Waits until a node moves.
    pub(crate) fn wait_for_move(&self) {
        let mut turns = lock(&self.turns);
        let before = turns.begun;
        turns.waiting += 1;
        self.turned.notify_all();
        let (mut turns, waited) = self
            .turned
            .wait_timeout_while(turns, MOVE_PATIENCE, |turns| turns.begun == before)
            .unwrap_or_else(PoisonError::into_inner);
        turns.waiting -= 1;
        assert!(!waited.timed_out(), "no node moves");
    }

    /// Lets those go on who wait for a move.
    fn begin_turn(&self) {
        lock(&self.turns).begun += 1;
        self.turned.notify_all();
    }

    /// Waits until somebody waits for a move. Returns whether somebody does: nobody takes part any
    /// more otherwise.
    fn is_wanted(&self) -> bool {
        let turns = lock(&self.turns);
        let is_idle = |turns: &mut Turns| turns.waiting == 0 && turns.participants > 0;
        let turns = self.turned.wait_while(turns, is_idle).unwrap_or_else(PoisonError::into_inner);
        turns.waiting > 0
    }

    pub(crate) fn root_token(&self) -> &str {
        self.made["root_token"].as_str().unwrap()
    }

    /// Sends a request to a random node, and again to others until one answers it. Returns the
    /// answer, and whether an earlier one may have done what was asked.
    pub(crate) fn send(&self, call: &Call, patience: Duration, rng: &mut Rng) -> (Answer, bool) {
        let began = Instant::now();
        let mut may_be_done = false;
        loop {
            let node = rng.below(NAMES.len());
            let answer = self.try_to_send(node, call, patience);
            match &answer {
                // Nobody has it; or the node was halted so long that it does not read any more what
                // waited for it.
                Ok(answer) if matches!(answer.status, 408 | 503) => add(&self.counts.refused),
                Ok(answer) if is_unknown(answer) => {
                    add(&self.counts.unknown);
                    may_be_done = true;
                }
                Ok(answer) => return (answer.clone(), may_be_done),
                Err(NoAnswer::NotSent) => add(&self.counts.unreachable),
                Err(NoAnswer::Lost) => {
                    add(&self.counts.unknown);
                    may_be_done = true;
                }
            }
            assert!(began.elapsed() < PATIENCE, "{call:?} to node {node}: {answer:?}\n{}", self.end_of_logs());
            std::thread::sleep(Duration::from_millis(20 + rng.below(80) as u64));
        }
    }

    /// Sends a request to a node, once.
    fn try_to_send(&self, node: usize, call: &Call, patience: Duration) -> Result<Answer, NoAnswer> {
        let address = *lock(&self.addresses[node]);
        let mut connection = Connection::open_for(address, patience).map_err(|_| NoAnswer::NotSent)?;
        match connection.send(call) {
            Ok((answer, _)) => Ok(answer),
            Err(Broken::Stale | Broken::Failed(_)) => Err(NoAnswer::Lost),
        }
    }

    /// When partitions began to be served, and by which node, in order.
    fn served(&self) -> Vec<(i64, u16, usize)> {
        let mut served: Vec<(i64, u16, usize)> = Vec::new();
        for (node, name) in NAMES.iter().enumerate() {
            let log = std::fs::read_to_string(log_of(self.dir.path(), name)).unwrap();
            let lines = log.lines().filter(|line| line.contains("\"serves a partition\""));
            served.extend(lines.filter_map(|line| {
                let line: Value = serde_json::from_str(line).ok()?;
                let at = Moment::parse_rfc3339(line["timestamp"].as_str()?)?;
                Some((at.0, u16::try_from(line["partition"].as_u64()?).ok()?, node))
            }));
        }
        served.sort_unstable();
        served
    }

    /// The changes of owners up to now, in order.
    pub(crate) fn moves(&self) -> Vec<Move> {
        let mut owners = BTreeMap::new();
        let is_move = |(at_ms, partition, node)| {
            let before = owners.insert(partition, node);
            before.is_some_and(|before| before != node).then_some(Move { at_ms, partition })
        };
        self.served().into_iter().filter_map(is_move).collect()
    }

    /// The owner of a random partition, so that it is mostly one with many.
    fn some_owner(&self, rng: &mut Rng) -> usize {
        let owners: BTreeMap<u16, usize> = self.served().into_iter().map(|(_, partition, node)| (partition, node)).collect();
        let owners: Vec<usize> = owners.into_values().collect();
        if owners.is_empty() { rng.below(NAMES.len()) } else { *rng.pick(&owners) }
    }

    /// The last lines that each node logged.
    pub(crate) fn end_of_logs(&self) -> String {
        let mut ends = String::new();
        for name in NAMES {
            let log = std::fs::read_to_string(log_of(self.dir.path(), name)).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            ends += &format!("{name}:\n{}\n", lines[lines.len().saturating_sub(30)..].join("\n"));
        }
        ends
    }
}

impl fmt::Display for MovingNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        let Counts { kills, restarts, stops, halts, calms, refused, unreachable, unknown } = &self.counts;
        write!(f, "{} nodes killed and replaced, {} killed and restarted at once, ", of(kills), of(restarts))?;
        write!(f, "{} stopped, {} halted, {} times calm; ", of(stops), of(halts), of(calms))?;
        write!(f, "requests: {} refused, {} to a node that was gone, ", of(refused), of(unreachable))?;
        write!(f, "{} of which nobody knew whether they had an effect", of(unknown))
    }
}

/// Why there is no answer.
#[derive(Debug)]
enum NoAnswer {
    NotSent,
    Lost,
}

fn is_unknown(answer: &Answer) -> bool {
    answer.status == 500 && answer.json()["error"]["code"] == "outcome_unknown"
}

fn log_of(dir: &Path, name: &str) -> std::path::PathBuf {
    dir.join(name).with_extension("log")
}

fn address_of(node: &Node) -> SocketAddr {
    node.url.strip_prefix("http://").unwrap().parse().unwrap()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Participant<'_> {
    fn drop(&mut self) {
        let mut turns = lock(&self.0.turns);
        turns.participants -= 1;
        turns.is_broken |= std::thread::panicking();
        drop(turns);
        self.0.turned.notify_all();
    }
}

impl<'a> Mover<'a> {
    fn new(shared: &'a MovingNodes, nodes: [Node; NAMES.len()], rng: Rng) -> Self {
        Self { shared, nodes, rng }
    }

    /// Moves nodes whenever somebody waits for it, until nobody takes part any more.
    fn run(mut self) {
        let mut turn = 0;
        while self.shared.is_wanted() {
            if turn % CALM_EACH == CALM_EACH - 1 {
                add(&self.shared.counts.calms);
                std::thread::sleep(CALM);
                self.shared.begin_turn();
                std::thread::sleep(MOVES);
            } else {
                self.turn(turn);
            }
            turn += 1;
            self.pause(1, 2);
        }
    }

    /// Takes an owner away for a while, and now and then a second one: in each of the first ways
    /// once, then at random.
    fn turn(&mut self, turn: usize) {
        let counts = &self.shared.counts;
        let first = self.shared.some_owner(&mut self.rng);
        match if turn < 3 { turn * 3 } else { self.rng.below(10) } {
            0..3 => {
                add(&counts.stops);
                self.shared.begin_turn();
                self.nodes[first].stop();
                if turn > 0 && self.rng.chance(30) {
                    self.away((first + 1) % NAMES.len(), Absence::Killed);
                }
                self.pause(1, 3);
                self.start(first);
            }
            3..6 => self.away(first, Absence::Killed),
            6..9 => self.away(first, Absence::Halted),
            _ => {
                // Before its leases are over.
                add(&counts.restarts);
                self.nodes[first].kill();
                self.shared.begin_turn();
                self.start(first);
            }
        }
    }

    /// Has a node away until it is replaced.
    fn away(&mut self, node: usize, absence: Absence) {
        match absence {
            Absence::Killed => {
                add(&self.shared.counts.kills);
                self.nodes[node].kill();
            }
            Absence::Halted => {
                add(&self.shared.counts.halts);
                self.nodes[node].signal("STOP");
            }
        }
        self.shared.begin_turn();
        // For some time after it is replaced: a halted one goes on in a cluster that has long gone
        // on.
        self.pause(REPLACED_SECS, 6);
        match absence {
            Absence::Killed => self.start(node),
            Absence::Halted => self.nodes[node].signal("CONT"),
        }
    }

    /// Starts a node again, and waits until it answers.
    fn start(&mut self, place: usize) {
        let is_next = self.shared.kind == Kind::OfTwoVersions && self.rng.chance(50);
        self.nodes[place] = self.shared.start_node(place, is_next);
        let began = Instant::now();
        while !self.shared.try_to_send(place, &Call::get("/readyz"), PATIENCE).is_ok_and(|answer| answer.status == 200) {
            assert!(began.elapsed() < PATIENCE, "node {place} is not ready\n{}", self.shared.end_of_logs());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits for some seconds, and at random up to `more`.
    fn pause(&mut self, secs: usize, more: usize) {
        std::thread::sleep(Duration::from_millis((secs * 1000 + self.rng.below(more * 1000)) as u64));
    }
}

/// Those of some moves that concern partitions, in a span of time.
pub(crate) fn moves_of(moves: &[Move], partitions: &BTreeSet<u16>, (from_ms, to_ms): (i64, i64)) -> usize {
    let concerns = |one: &&Move| (from_ms..=to_ms).contains(&one.at_ms) && partitions.contains(&one.partition);
    moves.iter().filter(concerns).count()
}

/// Runs a trial for each seed, as many at once as said, while nodes move. Ends early after three
/// that failed. Returns their outcomes.
pub(crate) fn while_nodes_move<T: Send>(
    (nodes, started): (&MovingNodes, [Node; NAMES.len()]),
    at_once: usize,
    seeds: &[u64],
    trial: impl Fn(&MovingNodes, u64) -> Result<T, String> + Sync,
) -> Vec<Result<T, String>> {
    let (next, outcomes) = (AtomicUsize::new(0), Mutex::<Vec<Result<T, String>>>::default());
    let began = Instant::now();
    let participants: Vec<_> = seeds.iter().take(at_once).map(|_| nodes.participant()).collect();
    std::thread::scope(|scope| {
        let mover = Mover::new(nodes, started, Rng::new(seeds.first().copied().unwrap_or_default()));
        scope.spawn(move || mover.run());
        for participant in participants {
            let (next, outcomes, trial) = (&next, &outcomes, &trial);
            scope.spawn(move || {
                let _until_the_end = participant;
                loop {
                    let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
                    let has_failed = lock(outcomes).iter().filter(|outcome| outcome.is_err()).count() >= 3;
                    if has_failed || nodes.is_broken() {
                        return;
                    }
                    let outcome = trial(nodes, *seed);
                    let verdict = if outcome.is_ok() { "equal" } else { "differs" };
                    println!("{:5.0} s  seed {seed}: {verdict}", began.elapsed().as_secs_f64());
                    lock(outcomes).push(outcome);
                }
            });
        }
    });
    outcomes.into_inner().unwrap_or_else(PoisonError::into_inner)
}
