"""Mistakes about nodes of two versions, which `run.py` plants as `bugs.py` has those of the domain. The test that upgrades a cluster under load catches them."""

BUGS = [
    # Of the crate of the cluster.
    ("a node writes records that only the later version reads", "self.appender.written().control", "9"),
    ("a node writes messages that only the later version reads", "levels.log).unwrap_or(u8::MAX), kind]", "Levels::own().log.max(levels.log)).unwrap_or(u8::MAX), kind]"),
    ("a base is published that a version before can't read", "self.connection.written().fold == Levels::own().fold", "true"),
    ("a state of another version is adopted", ".filter(|list| list.state_version == self.version)", ""),
]

ENGINE_BUGS = [
    ("merged answers do not say which versions owners have", "incarnation ^ xxh3_128(answers_version().as_bytes())", "incarnation"),
]
