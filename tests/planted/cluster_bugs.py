"""The bugs that `run.py` plants in the log of a cluster, as `bugs.py` has those of the domain. The tests of the crate, with real brokers, catch them."""

BUGS = [
    # The log.
    ("a message may be anywhere", "if written != chain {", "if written.0 == 0 {"),
    ("an append expects nothing", ".expected_last_sequence(end.sequence)", ""),
    ("an owner begins without an epoch message", "match writer.record(Content::Epoch).await {", "match Ok::<u64, LogError>(0) {"),
    ("an epoch is used twice", "if writer.end.epoch >= epoch {", "if writer.end.epoch > epoch {"),
    ("an owner of an epoch that is over writes", "Content::Events(_) => message.epoch == self.end.epoch,", "Content::Events(_) => true,"),
    ("a message counts before brokers confirmed it", "Sent::Rejected(reason) | Sent::Unsent(reason) | Sent::Unanswered(reason) => reason,", "Sent::Unanswered(_) => return Ok(next),\n                Sent::Rejected(reason) | Sent::Unsent(reason) => reason,"),
    ("a stream need not have what was read of it", "appender.reader().confirm(end).await?;", ""),
    ("a stream need not have what was recorded", "match self.reader.confirm(end).await {", "match Ok::<(), LogError>(()) {"),
    ("positions begin anew in each message", "let mut next = position::first_of(sequence);", "let mut next = sequence;"),
    ("a record is read whose events were wanted before", "if last > after {", "if first > after {"),
    ("what can't be recorded refuses others", "let is_refused = entries.iter().any(|entry| entry.count == 0);", "let is_refused = entries.is_empty();"),
    ("closing waits for brokers that are gone", "self.stop.send_replace(true);", ""),
    ("what may be recorded is refused", "Outcome::Undecided(ticket)).collect();", "Outcome::Refused(Refused { reason: Arc::new(StorageError::Empty), ticket })).collect();"),
    # The check of brokers.
    ("brokers need not sync", "Some(false) => problems.push(Problem::NotSynced(name())),", "Some(false) => {}"),
    # Leases.
    ("a lease is taken while it is held", "now - since >= self.leases.timing.taken_after", "now >= since"),
    ("a lease is valid when another node may have it", "self.until = sent + self.leases.timing.held", "self.until = sent + self.leases.timing.taken_after * 2"),
    ("a released lease is held", "record.released || is_own", "is_own"),
    ("a lost lease is renewed", "record.nonce == self.record.nonce && !record.released", "!record.released"),
    ("another start of a machine is the same", "record.node == self.holder.node && record.boot == self.holder.boot", "record.node == self.holder.node"),
]
