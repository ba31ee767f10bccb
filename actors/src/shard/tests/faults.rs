//! Checkpoints on a disk whose every operation fails once. They are written in the end, and no
//! event is lost or counted twice.

use headcount_common::partition_of;
use headcount_storage::files::switch::{Errno, Plan, Switch};
use headcount_storage::store::{Check, DiskStore, StoreOptions};

use super::*;

const OPTIONS: StoreOptions = StoreOptions { cache_bytes: 1 << 20, check: Check::Full };
const PROJECT: ProjectId = ProjectId(1);

/// The ways in which an operation fails.
const WAYS: [Plan; 4] = [
    Plan { at: 0, failures: 1, errno: Errno::NoSpace, done: false },
    Plan { at: 0, failures: u64::MAX, errno: Errno::NoSpace, done: false },
    Plan { at: 0, failures: 3, errno: Errno::Io, done: false },
    Plan { at: 0, failures: 1, errno: Errno::Io, done: true },
];

/// The maximum number of failing points in a round, which exceeds the number of operations of a
/// round.
const POINTS: u64 = 400;
/// The number of rounds between restarts.
const ROUNDS_A_START: u64 = 25;

impl Rig<DiskStore> {
    fn on_disk() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = DiskStore::open(&dir.path().join("state/store"), OPTIONS).unwrap();
        Self::with(dir, store, NEVER, 1 << 30)
    }

    /// Closes everything and reopens it from the store and the log.
    fn start_again(self) -> Self {
        let Self { dir, log, store, memory, shard } = self;
        drop((shard, memory, store));
        // The writer releases the store when it notices that the shard is gone.
        let opened = (0..600).find_map(|_| {
            let opened = DiskStore::open(&dir.path().join("state/store"), OPTIONS);
            opened.inspect_err(|_| std::thread::sleep(Duration::from_millis(50))).ok()
        });
        let store = opened.expect("the store can be opened");
        let (shard, memory) = open(&dir, log.reader(), &store, NEVER, 1 << 30);
        Self { dir, log, store, memory, shard }
    }

    /// Runs one round with a fault, and returns the number of its operations.
    fn faulty_round(&mut self, switch: &Switch, plan: Plan) -> u64 {
        switch.rearm(plan);
        let next = self.shard.begin_checkpoints(true);
        self.go_on(next);
        let operations = switch.operations();
        switch.clear();
        let partition = partition_of(PROJECT);
        self.until(|rig| {
            rig.shard.checkpoints.writer.retry_now(partition);
            rig.progress().failing() == 0
        });
        operations
    }

    fn check(&mut self, users: u64) {
        assert!(self.shard.pipeline.first_fault().is_none(), "{:?}", self.shard.pipeline.first_fault());
        let meta: PartitionMeta = read_meta(&self.store, &position_key(partition_of(PROJECT))).unwrap().unwrap_or_default();
        assert_eq!((meta.position, meta.external_ids), (self.log.last_position(), users));
        assert_eq!(self.users(PROJECT), users);
    }
}

#[test]
fn every_operation_of_a_checkpoint_may_fail() {
    let mut rig = Rig::on_disk();
    let (mut round, mut known) = (0, 0);
    for way in WAYS {
        for at in 1..POINTS {
            // New users and known users.
            rig.send(PROJECT, users(PROJECT, known.max(3) - 3..known + 5));
            known += 5;
            let switch = Switch::arm(&rig.dir.path().join("state"), Plan::default());
            let operations = rig.faulty_round(&switch, Plan { at, ..way });
            rig.check(known);
            round += 1;
            if round % ROUNDS_A_START == 0 {
                drop(switch);
                rig = rig.start_again();
                assert_eq!(rig.shard.replayed, 0);
                rig.check(known);
            }
            if operations < at {
                break;
            }
        }
    }
    assert!(round > 60, "{round} rounds had something to fail");
    let runs = std::fs::read_dir(rig.dir.path().join("state/fingerprints").join(partition_of(PROJECT).to_string()));
    let runs = runs.unwrap().filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|kind| kind == "run")).count();
    assert!(runs < 40, "{runs} runs after {round} rounds");
    rig = rig.start_again();
    assert_eq!(rig.shard.replayed, 0);
    rig.check(known);
    rig.send(PROJECT, users(PROJECT, 0..known));
    assert_eq!(rig.users(PROJECT), known, "all of them are duplicates");
}
