"""The bugs that `run.py` plants in questions between nodes, as `bugs.py` has those of the domain. The tests of two nodes catch them."""

BUGS = [
    ("a project without a known owner is left out", "Owner::Nowhere => places.has_lost = true,", "Owner::Nowhere => {}"),
    ("a project that is elsewhere by now answers", "if self.owners().of_project(project) == Owner::Here { Ok(()) } else { Err(AskNodeError::NotHere) }", "Ok(())"),
    ("a project of another organization answers", "if config.is_none_or(|config| config.policy.organization != organization) {", "if config.is_none_or(|config| config.policy.organization == OrganizationId(0) && organization == OrganizationId(0)) {"),
    ("versions come in the order of nodes", "versions.sort_unstable_by_key(|(place, _)| *place);", ""),
    ("a tag leaves out the events of other nodes", "versions.push((place, self.project_version(projects[place]).await?));", "versions.push((place, self.project_version(projects[place]).await?));\n            versions.retain(|(other, _)| *other <= place);"),
    ("each part lists all identities", "hash % self.parts.max(1) == self.part", "hash % self.parts.max(1) == self.part || self.part == 1"),
    ("an answer to another question counts", "(found, value) if found == tag =>", "(found, value) if found == tag || found != tag + 1 =>"),
    ("the identities of other nodes are left out", "active = self.collect_from(turn, node, window, active).await?;", "let _ = (node, turn, window);"),
]

# In partitions that move between engines; `actors/tests/handover.rs` catches them.
HANDOVER_BUGS = [
    ("an owner answers although its time is over", "until == ALWAYS || (until != NEVER && millis(boot_time()) < until)", "until != NEVER"),
    ("what is left of an earlier time is served", "        self.give_up(number);\n        self.pipeline.adopt(number, until, copied);", "        if !self.pipeline.partitions.contains_key(&number) {\n            self.pipeline.adopt(number, until, copied);\n        }"),
    ("a log that lost its end is served", "if partition.applied > self.until {", "if false {"),
    ("what is found in a partition that moved counts", "if !(range.is_held)() {", "if false {"),
    ("a partition that no report has is verified", "report.not_verified.entry(*partition).or_insert_with(|| UnverifiedPartition { node, reason });", "let _ = (node, reason);"),
    ("an erasure waits for a partition that has moved", "if is_over() || !left.iter().all(|(partition, _)| self.owners().is_here(*partition)) {", "if is_over() {"),
    ("an addition to counts without an answer is made twice", "if !stored.has(addition) {", "if true {"),
    ("a former owner says that the next one has written its counts", "(mark.epoch, mark.writer) == (epoch, self.writer)", "mark.epoch >= epoch"),
    ("counts that a killed owner did not write are not missed", "mark.at.filter(|_| mark.writer != self.writer)", "mark.at.filter(|_| mark.writer == 0)"),
    ("a machine of several makes salts of its own", "if !self.makes_salts {", "if false {"),
]

# In privacy requests of several nodes; `cluster/tests/it/privacy.rs` catches them.
PRIVACY_BUGS = [
    ("an export leaves out ids whose links are not saved yet", "engine.save_blocking([partition_of(project)], &is_over)?;", "let _unsaved = &is_over;"),
    ("a new home relies on the artifacts of the former one", "None => self.change(&request.id, PrivacyRequest::make_again)?,", "None => {}"),
    ("a home begins without what others have done", "self.prove(partition)?;", "let _unproved = Self::prove;"),
    ("an export that is made again is kept for longer", "ExportState { expires_at: self.export.expires_at, ..ExportState::default() }", "ExportState::default()"),
]

# In nodes of a cluster; `tests/it/cluster_histories.rs` catches them.
MOVING_BUGS = [
    ("a replay leaves out messages after the checkpoint", "Wanted::partition(*number, partition.applied)", "Wanted::partition(*number, partition.applied + 3 * 8192)"),
]

# The same, in the crate of the cluster.
MOVING_NODE_BUGS = [
    ("a change is answered before the other nodes know it", "let asked = timeout_at(until, self.ask(made, until)).await;", "let asked = timeout_at(until, async { Ok(drop(self.ask(made, until))) }).await;"),
]
