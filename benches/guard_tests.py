#!/usr/bin/env python3
"""Tests of the guard's reading and comparing."""
import tempfile
import unittest
from pathlib import Path

import callgrind
import guard
from guard import Figure

DUMP = """version: 1
creator: callgrind-3.19.0
pid: 1
part: 4
thread: 2

desc: Trigger: --dump-before=*guard_mark*
positions: line
events: Ir
summary: 190

ob=(1) /guard
fl=(1) main.rs
fn=(1) guard::work::h0123456789abcdef
10 20
+2 10
cfn=(2) __rustc::__rust_alloc
calls=3 5
+1 90
cfn=(4) mi_realloc_aligned
calls=2 5
* 40

fn=(2)
5 30
cfn=(3) mi_malloc_aligned
calls=3 7
5 60

fn=(3)
7 60

fn=(4)
8 25
cfn=(5) mi_malloc
calls=1 7
8 15

fn=(5)
9 15

fn=(6) <mimalloc::MiMalloc as core::alloc::global::GlobalAlloc>::alloc
cfn=(3)
calls=1 7
5 0

fn=(1)
cfn=(1)
calls=1 10
10 5
totals: 160
"""


def figures(**figures):
    return {tuple(key.split("_")): Figure(*figure) for key, figure in figures.items()}


class Guard(unittest.TestCase):
    def dump(self):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "out.4-02"
            path.write_text(DUMP)
            return callgrind.read(path)

    def test_a_dump_is_read(self):
        counts = self.dump()
        self.assertEqual(counts.instructions(), 160)
        self.assertEqual(counts.own["guard::work"], 30)
        self.assertEqual(counts.inclusive()["guard::work"], 160)

    def test_an_allocation_counts_once_where_it_is_asked_for(self):
        self.assertEqual(self.dump().allocations(), {"guard::work": 5})

    def test_only_allocations_of_a_timed_thread_count(self):
        figure = Figure.of("shard", self.dump(), 5)
        self.assertEqual((figure.instructions, figure.allocations), (0, 1))

    def test_figures_are_read_as_they_are_written(self):
        counted = figures(parse_main=(1234567, 0), fold_shard=(52.4, 12.34))
        version, read = guard.read(guard.written("rustc 1.0.0 (0)", counted))
        self.assertEqual(version, "rustc 1.0.0 (0)")
        self.assertEqual([(key, figure.instructions, figure.allocations) for key, figure in read.items()],
                         [(("parse", "main"), 1234567, 0), (("fold", "shard"), 52, 12.34)])

    def test_growth_within_the_margin_passes(self):
        grown, shrunk = guard.compare(figures(parse_main=(10000, 10)), figures(parse_main=(10490, 10.1)), True)
        self.assertEqual((grown, shrunk), ([], []))

    def test_a_few_allocations_of_threads_that_wait_are_no_matter(self):
        grown, _ = guard.compare(figures(ask_shard=(0, 2.5)), figures(ask_shard=(0, 3.4)), True)
        self.assertEqual(grown, [])
        grown, _ = guard.compare(figures(ask_shard=(0, 2.5)), figures(ask_shard=(0, 3.6)), True)
        self.assertEqual(len(grown), 1)

    def test_growth_beyond_the_margin_is_named(self):
        grown, shrunk = guard.compare(figures(parse_main=(10000, 10)), figures(parse_main=(10510, 10.3)), True)
        self.assertEqual(grown, [
            "parse, main: from 10,000 to 10,510 instructions (+5.1%; up to 5% is allowed)",
            "parse, main: from 10.00 to 10.30 allocations (+3.0%; up to 2% is allowed)",
        ])
        self.assertEqual(shrunk, [])

    def test_a_first_allocation_is_too_many(self):
        grown, _ = guard.compare(figures(parse_main=(10000, 0)), figures(parse_main=(10000, 1)), True)
        self.assertEqual(len(grown), 1)

    def test_what_became_cheaper_is_no_failure(self):
        grown, shrunk = guard.compare(figures(parse_main=(10000, 10)), figures(parse_main=(9000, 9)), True)
        self.assertEqual((grown, len(shrunk)), ([], 2))

    def test_another_compiler_may_make_more_instructions_but_no_allocations(self):
        grown, _ = guard.compare(figures(parse_main=(10000, 10)), figures(parse_main=(11900, 11)), False)
        self.assertEqual(grown, ["parse, main: from 10.00 to 11.00 allocations (+10.0%; up to 2% is allowed)"])
        grown, _ = guard.compare(figures(parse_main=(10000, 10)), figures(parse_main=(12100, 10)), False)
        self.assertEqual(len(grown), 1)

    def test_every_stage_is_known_and_counted(self):
        grown, _ = guard.compare(figures(parse_main=(1, 0)), figures(encode_main=(1, 0)), True)
        self.assertEqual(grown, ["encode, main: is not in guard.txt", "parse, main: is in guard.txt, but was not counted"])


if __name__ == "__main__":
    unittest.main()
