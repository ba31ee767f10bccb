"""The bugs that `run.py` plants in the log of a cluster, as `bugs.py` has those of the domain. The tests of the crate, with real brokers, catch them."""

BUGS = [
    ("a message may be anywhere", "if written != chain.0.to_le_bytes() {", "if written.is_empty() {"),
    ("an append expects nothing", "payload(payload).expected_last_sequence(last)", "payload({ let _ = last; payload })"),
    ("an owner begins without an epoch message", "begun => return begun.map(|_| writer),", "_ => return Ok(writer),"),
    ("an epoch is used twice", "if writer.end.epoch >= epoch {", "if writer.end.epoch > epoch {"),
    ("an owner of an epoch that is over writes", "if message.epoch < end.epoch {", "if message.epoch < end.epoch && false {"),
    ("a message counts before brokers confirmed it", "unanswered = true;", "unanswered = true;\n                    return Ok(next);"),
    ("a message that may be recorded is given up", "Sent::Passed => {}", "Sent::Passed => return Err(LogError::Fenced { by: u64::MAX }),"),
    ("what was purged is passed over", "if info.state.first_sequence > end.sequence + 1 {", "if info.state.first_sequence > u64::MAX - 1 {"),
    ("brokers need not sync", "Some(false) => problems.push(Problem::NotSynced(name())),", "Some(false) => {}"),
]
