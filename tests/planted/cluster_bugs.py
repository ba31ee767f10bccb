"""The bugs that `run.py` plants in the log of a cluster, as `bugs.py` has those of the domain. The tests of the crate, with real brokers, catch them."""

BUGS = [
    ("a message may be anywhere", "if written != chain.0.to_le_bytes() {", "if written.is_empty() {"),
    ("an append expects nothing", "payload(payload).expected_last_sequence(last)", "payload({ let _ = last; payload })"),
    ("an owner begins without an epoch message", "match writer.record(Content::Epoch).await {", "match Ok::<u64, LogError>(0) {"),
    ("an epoch is used twice", "if writer.end.epoch >= epoch {", "if writer.end.epoch > epoch {"),
    ("an owner of an epoch that is over writes", "if message.epoch < end.epoch {", "if message.epoch < end.epoch && false {"),
    ("a message counts before brokers confirmed it", "unanswered = true;", "unanswered = true;\n                    return Ok(next);"),
    ("a message that may be recorded is given up", "Sent::Passed => {}", "Sent::Passed => return Err(LogError::Fenced { by: u64::MAX }),"),
    ("what was purged is passed over", "if first > end.sequence + 1 {", "if first > u64::MAX - 1 {"),
    ("brokers need not sync", "Some(false) => problems.push(Problem::NotSynced(name())),", "Some(false) => {}"),
    ("a lease is taken while it is held", "now - since >= self.leases.timing.taken_after", "now >= since"),
    ("a lease is valid when another node may have it", "self.until = sent + self.leases.timing.held", "self.until = sent + self.leases.timing.taken_after * 2"),
    ("a released lease is held", "record.released || is_own", "is_own"),
    ("a lost lease is renewed", "record.nonce == self.record.nonce && !record.released", "!record.released"),
    ("another start of a machine is the same", "record.node == self.holder.node && record.boot == self.holder.boot", "record.node == self.holder.node"),
    ("positions begin anew in each message", "let mut next = position::first_of(sequence);", "let mut next = sequence;"),
    ("a record is read whose events were wanted before", "if last > after {", "if first > after {"),
    ("what can't be recorded refuses others", " || next.count == 0 || batch[0].count == 0", ""),
]
