"""The bugs that `run.py` plants in the log of a cluster, as `bugs.py` has those of the domain. The tests of the crate, with real brokers, catch them."""

BUGS = [
    # The log.
    ("a message may be anywhere", "if written != chain {", "if written.0 == 0 {"),
    ("an append expects nothing", ".expected_last_sequence(end.sequence)", ""),
    ("an owner begins without an epoch message", "match writer.record(Content::Epoch).await {", "match Ok::<u64, LogError>(0) {"),
    ("an epoch is used twice", "if writer.end.epoch >= epoch {", "if writer.end.epoch > epoch {"),
    ("an owner of an epoch that is over writes", "Content::Events(_) => message.epoch == self.end.epoch,", "Content::Events(_) => true,"),
    ("a message counts before brokers confirmed it", "Sent::Rejected(reason) | Sent::Unsent(reason) | Sent::Unanswered(reason) => reason,", "Sent::Unanswered(_) => return Ok(next),\n                Sent::Rejected(reason) | Sent::Unsent(reason) => reason,"),
    ("a stream need not have what was read of it", "appender.reader.confirm(end).await?;", ""),
    ("a stream need not have what was recorded", "match self.reader.confirm(end).await {", "match Ok::<(), LogError>(()) {"),
    ("positions begin anew in each message", "let mut next = position::first_of(sequence);", "let mut next = sequence;"),
    ("a record is read whose events were wanted before", "if last > after {", "if first > after {"),
    ("what can't be recorded refuses others", "let is_refused = entries.iter().any(|entry| entry.count == 0);", "let is_refused = entries.is_empty();"),
    ("closing waits for brokers that are gone", "self.stop.send_replace(true);", ""),
    ("what may be recorded is refused", "Outcome::Undecided(ticket)).collect();", "Outcome::Refused(Refused { reason: Arc::new(StorageError::Empty), ticket })).collect();"),
    # The control log.
    ("an equal record of another node is an own one", "fastrand::u64(..).to_le_bytes()", "0u64.to_le_bytes()"),
    ("what may be recorded counts as not recorded", "if is_unknown { Err(ControlError::Undecided(error.to_string())) } else { Err(failed(error)) }", "Err(failed(error))"),
    ("a record follows one that is lost", "self.answer(self.appender.reader.confirm(end))?;", ""),
    ("a control log has owners", "(Content::Events(entries), 0) => match &entries[..] {", "(Content::Epoch, _) => Some(&[]),\n        (Content::Events(entries), 0) => match &entries[..] {"),
    ("what others recorded is not asked for", "self.answer(self.appender.reader.ask_bounds()).map(drop)", "Ok(())"),
    # Shared snapshots of the control data.
    ("records leave that one snapshot alone covers", "shared.kept.get(KEPT - 1)", "shared.kept.first()"),
    ("a snapshot is listed that was not read back", "self.parts.read_parts(&snapshot, &mut |_| Ok(()))?;", ""),
    ("a snapshot with another end is used", "self.confirm(snapshot.end)?;", ""),
    ("a snapshot of another control log is used", "self.confirm(snapshot.control)?;", ""),
    ("a dead writer is never replaced", "since.elapsed() < self.pace.patience", "since.elapsed() < Duration::MAX"),
    ("what a dead writer left stays", "for sequence in written + 1..tail {", "for sequence in tail..tail {"),
    # Making a cluster.
    ("a cluster is made twice", "cells.change(KEY, bytes.clone(), 0).await", "cells.put(KEY, bytes.clone()).await.map(Some)"),
    ("messages of nobody become those of a cluster", "_ => Err(InitError::Left(name.stream)),", "_ if partition > PARTITIONS => Err(InitError::Left(name.stream)),\n            _ => Ok(()),"),
    ("a node has a key of its own", "if hash_key_digest(data_dir)?.is_none_or(|digest| digest != record.hash_key_digest) {", "if hash_key_digest(data_dir)?.is_none() {"),
    ("an installation becomes a node", "check_left(&options.data_dir, &LEFT)?;", ""),
    # The check of brokers.
    ("brokers need not sync", "Some(false) => problems.push(Problem::NotSynced(name())),", "Some(false) => {}"),
    # Files.
    ("a former owner publishes", "self.cells.change(&self.key_of(partition), bytes.clone(), own.revision).await", "self.cells.put(&self.key_of(partition), bytes.clone()).await.map(Some)"),
    ("an owner of an epoch that is over takes an archive over", "if found.epoch > epoch {", "if found.epoch > u64::MAX - epoch {"),
    ("the log loses a message whose chain is needed", "position::sequence_of(until).saturating_sub(1)", "position::sequence_of(until) + 1"),
    ("a list names files that are not there", "if self.bucket.put_file(&object, &path).await? != file.sha256 {", "if object.is_empty() {"),
    ("a damaged file is published", "if self.bucket.put_file(&object, &path).await? != file.sha256 {", "if self.bucket.put_file(&object, &path).await?.is_empty() {"),
    ("a former owner deletes what it does not name", "pointers.publish(partition, &mut self.pointer, list).await?;\n        self.unnamed.add(old);", "let _ = (pointers, partition, list);\n        self.unnamed.add(old);"),
    ("visitor salts stay behind", "for (day, salt) in salts {", "for (day, salt) in &salts[..0] {"),
    ("nodes keep files in several places", "if theirs != bucket.address() {", "if theirs.is_empty() {"),
    ("an object that is gone is not missed", "Err(BucketError::Missing(_)) => \"the object is missing\",", "Err(BucketError::Missing(_)) => continue,"),
    # Published states.
    ("a new owner replays what is published", "if sequence_of(list.position) <= sequence_of(own) + timing.worth_fetching {", "if sequence_of(list.position) > 0 {"),
    ("a published state of what the brokers lost is used", "Some(link) => match reader.confirm_link(link).await? {", "Some(_) => match true {"),
    ("a state of what the brokers lost is served", "Some(mark) => reader.confirm_lost(Link::from(mark), timing).await,", "Some(_) => Ok(true),"),
    ("a lost event that was set aside keeps its position", "let lost = positions.split_off(&(until + 1));", "let lost: BTreeSet<u64> = positions.split_off(&u64::MAX);"),
    ("a log that ends before the sealed events is written", "if reader.known_bounds().1 >= sealed {", "if reader.known_bounds().1 >= sealed.min(1) {"),
    ("what the brokers lost stops a partition for ever", "let is_resumed = resumed != mark.map_or(0, |mark| mark.resumed);", "let is_resumed = resumed != 0 && mark.is_none();"),
    # Two versions.
    ("partitions move to an earlier fold", "let fold = fold.min(latest);", "let fold = latest.min(0);"),
    ("a node takes back what it had as a later version", "if sighting.is_own && self.shared.levels.fold >= sighting.fold {", "if sighting.is_own {"),
    ("an upgrade is finalized while a node lacks it", "let nodes = behind(&cells, seen, own, timing).await?;", "let nodes: Vec<KnownNode> = Vec::new();"),
    ("a restored cluster answers as before it was lost", "self.restored.unwrap_or(self.incarnation)", "self.restored.map_or(self.incarnation, |_| self.incarnation)"),
    ("a node of an earlier version is one of the cluster", "if !own.cover(&self.levels) {", "if self.version == 0 {"),
    # Leases.
    ("a lease is taken while it is held", "now - since >= self.leases.timing.taken_after", "now >= since"),
    ("a lease is valid when another node may have it", "self.until = sent + self.leases.timing.held", "self.until = sent + self.leases.timing.taken_after * 2"),
    ("a released lease is held", "record.released || self.is_own(record)", "self.is_own(record)"),
    ("a lost lease is renewed", "record.nonce == self.record.nonce && !record.released", "!record.released"),
    ("another start of a machine is the same", "record.node == self.holder.node && record.boot == self.holder.boot", "record.node == self.holder.node"),
    # Nodes that can't serve.
    ("a partition moves again and again to a node that can't serve it", "let failed = lease.failed().iter().filter(|(_, failures)| !tries(failures));", "let failed = lease.failed().iter().filter(|(_, failures)| failures.times > 99);"),
    ("a node that answers nobody is waited for", "live.answering().filter(", "live.names().filter("),
    ("what was read before a node said that it answers again counts", "moments.counts_from.is_some_and(|from| began >= from)", "moments.counts_from.is_some()"),
    ("a node that can't serve keeps its partitions", "let drains = self.is_to_drain || ailment.is_some();", "let drains = self.is_to_drain;"),
    ("the key of a node that is gone stays", "let Some((_, dead)) = self.seen.values().find(|(since, _)| is_dead(*since)) else { return };", "let Some((_, dead)) = self.seen.values().find(|(since, _)| is_dead(*since)).filter(|_| false) else { return };"),
    ("a code that is ended leaves a marker", "self.cells.purge(key, None)", "self.cells.delete(key)"),
]

# Of the engine: erasures while partitions move.
ERASURE_BUGS = [
    ("figures of the erased outlast a move", "erasures: self.questions.reflected_erasures(project),", "erasures: 0,"),
    ("a node does not note what it may have of the erased", "noted.erased.extend(erased);", ""),
    ("an erasure ends while brokers have its events", "if !logged.numbers.is_empty() && remove_from_log(&mut self.log, sources, project, logged.until)? {", "if !logged.numbers.is_empty() {"),
    ("a published state keeps the erased", "sources.files.withdraw_state(partition_of(project)).map_err(unpublished)?;", ""),
    ("ids that are erased elsewhere are recorded", "suppression.suppressed = suppressed;", "drop(suppressed);"),
]

# Of the engine: brokers lose events while a node runs, and the node goes on without them.
LOST_BUGS = [
    ("figures of lost events are advanced", "resumed: self.questions.resumed(project),", "resumed: 0,"),
    ("an entity tag of a lost event stands for another event", "self.incarnation ^ u128::from(self.resumed(project)) << 64", "self.incarnation"),
    ("a cursor of before a loss goes on", "self.starts.has(start_number ^ self.resumed(project), position)", "self.starts.has(start_number, position)"),
]

# Of the engine: a project gets a retention while a backup is made, and moves.
BACKUP_BUGS = [
    ("a backup loses events by a new retention", "*held = Some(held.map_or(until, |other| other.max(until)));", ""),
    ("a backup asks once for what it needs", "tokio::time::sleep(AGAIN_AFTER).await;", "return;"),
    ("a checkpoint before the base of another node stays", "Some(_) => refold::remove_saved(&*store, self.stored_as, project)?,", "Some(_) => {}"),
]
