//! Keeping a shard's records within its share of the memory: saved ones that are not in use are let go of, and read back
//! from the store on demand. Where too much is not saved yet, a checkpoint is due before its time; and where a checkpoint
//! can't keep up, applying waits for it.

use headcount_domain::fold::Fault;
use headcount_domain::table::Bytes;

use super::checkpoint::Next;
use super::shard::Shard;

/// After how many events, and how many questions, the memory is looked at.
const EVENTS_A_LOOK: usize = 1024;
const QUESTIONS_A_LOOK: usize = 64;
/// How many records of each kind and project one look passes over: a good millisecond at most.
const RECORDS_A_LOOK: usize = 4096;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    /// How many bytes of records a shard may keep.
    limit: usize,
    events: usize,
    questions: usize,
    /// Too much is not saved yet.
    pressed: bool,
    /// So much that applying must wait for a checkpoint.
    stopped: bool,
}

impl Memory {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, events: 0, questions: 0, pressed: false, stopped: false }
    }

    /// How much of the log is replayed before the memory is looked at: what its events become is some times larger.
    pub(super) fn replay_bytes(self) -> usize {
        self.limit / 8
    }
}

impl Shard {
    /// Some events were applied.
    pub(super) fn applied_some(&mut self, events: usize) {
        self.memory.events += events;
        if self.memory.events >= EVENTS_A_LOOK {
            self.relieve();
        }
    }

    /// A question was answered, which may have brought records into memory.
    pub(crate) fn answered_one(&mut self) {
        self.memory.questions += 1;
        if self.memory.questions >= QUESTIONS_A_LOOK {
            self.relieve();
        }
    }

    /// Lets go of what is not in use, if there is too much.
    pub(crate) fn relieve(&mut self) {
        let limit = self.memory.limit;
        (self.memory.events, self.memory.questions) = (0, 0);
        let mut bytes = self.bytes();
        if bytes.resident > limit {
            // A little more than is needed, so that the next look finds nothing to do.
            let mut enough = bytes.resident - limit / 8 * 7;
            for partition in self.partitions.values_mut() {
                enough = enough.saturating_sub(partition.evict(enough, RECORDS_A_LOOK));
            }
            bytes = self.bytes();
        }
        self.memory.pressed = bytes.resident > limit && bytes.unsaved > limit / 4;
        self.memory.stopped = bytes.unsaved > limit / 3 * 2;
    }

    fn bytes(&mut self) -> Bytes {
        let mut total = Bytes::default();
        self.partitions.values_mut().for_each(|partition| total += partition.bytes());
        total
    }

    /// Whether a checkpoint should begin before its time.
    pub(crate) fn is_pressed(&self) -> bool {
        self.memory.pressed || self.memory.stopped
    }

    /// Whether applying must wait for a checkpoint.
    pub(crate) fn is_stopped(&self) -> bool {
        self.memory.stopped
    }

    /// Writes checkpoints until there is room: at a start, where nobody else drives them.
    pub(super) fn make_room(&mut self) -> Result<(), Fault> {
        self.relieve();
        if !self.is_pressed() {
            return Ok(());
        }
        let mut next = self.begin_checkpoints(true);
        let (done, saved) = std::sync::mpsc::channel();
        loop {
            match next {
                Next::Rest => break,
                Next::Step => {
                    let done = done.clone();
                    next = self.step_checkpoint(move |saved| drop(done.send(saved)));
                }
                Next::Wait => {
                    let saved = saved.recv().map_err(|_| Fault("the checkpoint thread is gone".into()))?;
                    next = self.saved(saved);
                }
            }
        }
        if let Some(fault) = self.failed() {
            return Err(fault.clone());
        }
        self.relieve();
        Ok(())
    }
}
