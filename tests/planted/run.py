#!/usr/bin/env python3
"""Plants bugs in a copy of the domain, one at a time, and shows that the naive model catches each.

usage: run.py [NAME ...]      all bugs, or those whose names contain one of the words
Each bug is a replacement of text that must occur exactly once. A bug is caught when the comparison of random histories with
the model fails, survives when it passes. The tree itself is never touched: the domain is copied to target/planted.
"""
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "target" / "planted"
TRIALS = os.environ.get("HEADCOUNT_TRIALS", "250")

# (name, file in domain/src, what stands there, what the bug makes of it, and again for a bug in two places)
BUGS = [
    ("a refund is an order", "event.rs", "i64::from(money.amount > zero)", "i64::from(money.amount != zero)"),
    ("a refund adds no money", "event.rs", "if !money.counted || money.amount == zero {", "if !money.counted || money.amount <= zero {"),
    ("uncounted money counts", "event.rs", "if !money.counted || money.amount == zero {", "if money.amount == zero {"),
    ("money without a rate is added as if equal", "event.rs", "match money.in_project {", "match money.in_project.or(Some(money.amount)) {"),
    ("the last link wins", "fold.rs", "Some(Person::Linked(_)) => return Ok(()),", "Some(Person::Linked(_)) => None,"),
    ("a link leaves the past behind", "fold.rs", "let merged = self.merge(user_identity, former)?;", "let merged = user_identity; let _ = former;"),
    ("a link counts the past twice", "fold.rs", "        self.contribute(&small, Sign::Minus)?;\n        let company", "        let company"),
    ("the later company wins a merge", "fold.rs", "base.company.into_iter().chain(small.company).min()", "base.company.into_iter().chain(small.company).max()"),
    ("a merged identity keeps its account", "fold.rs", "            self.contribute(&base, Sign::Minus)?;\n            base.company = company;\n            self.contribute(&base, Sign::Plus)?;", "            base.company = company;"),
    ("a company takes only the future", "fold.rs", "                self.contribute(&identity, Sign::Minus)?;\n                identity.company = Some(Association { since: self.position, company });\n                self.contribute(&identity, Sign::Plus)?;", "                identity.company = Some(Association { since: self.position, company });"),
    ("an event's own company is ignored", "fold.rs", "        match company.or(identity.company.map(|association| association.company)) {\n            Some(account) => self.change_account(account, day, sums, Sign::Plus),", "        match identity.company.map(|association| association.company).or(company) {\n            Some(account) => self.change_account(account, day, sums, Sign::Plus),"),
    ("nobody is a user", "fold.rs", "RawId::Nobody => Level::Nobody,", "RawId::Nobody => Level::Identity,"),
    ("a domain told late takes only the future", "fold.rs", "        for (day, _, sums) in former.facts.entries() {\n            self.change_account(key, day, sums, Sign::Plus)?;\n        }", "        let _ = &former;"),
    ("the last domain told wins", "fold.rs", "Some(AccountSlot::Account(account)) if !account.key.is_domain() => account.clone(),\n            _ => return Ok(()),", "Some(AccountSlot::Account(account)) if !account.key.is_domain() => account.clone(),\n            Some(AccountSlot::Linked(_)) => Box::new(Account { key: domain.clone(), facts: Facts::default() }),\n            _ => return Ok(()),"),
    ("a domain can be told another", "fold.rs", "Some(AccountSlot::Account(account)) if !account.key.is_domain() => account.clone(),", "Some(AccountSlot::Account(account)) => account.clone(),"),
    ("a linked company keeps its account too", "fold.rs", "        self.project.rollups.contribute(Level::Account, &former.facts, Span::ALL, Sign::Minus, Change::ANY);\n        self.project.accounts.insert", "        self.project.accounts.insert"),
    ("a new day forgets the next one's gap", "facts.rs", "let last = if new_day { next.unwrap_or(day) } else { day };", "let last = day;"),
    ("the day before is not looked at", "rollups/distinct.rs", "let mut previous = facts.active_before(span.first);", "let mut previous: Option<crate::time::Day> = None;"),
    ("gaps are off by one", "rollups/distinct.rs", "self.by_gap.range(days.saturating_add(1)..)", "self.by_gap.range(days..)"),
    ("the total is a sum of days", "rollups/distinct.rs", "cell.not_seen_for(day.abs_diff(first))", "cell.on_the_day()"),
    ("accounts are counted as users", "rollups/unique_users.rs", "if level == Level::Identity {", "if level != Level::Nobody {", "level == Level::Identity && change.new_day", "level != Level::Nobody && change.new_day"),
    ("users without a company are no accounts", "fold.rs", "let own_account = level == Level::Identity && identity.company.is_none();", "let own_account = false;"),
    ("nobody's money is lost", "rollups/revenue.rs", "level != Level::Account && change.money", "level == Level::Identity && change.money"),
    ("days are UTC", "admission.rs", "day: policy.timezone.day_of(time),", "day: crate::time::Timezone::UTC.day_of(time),"),
    ("rates of another currency", "policy.rs", "Some(convert(amount, rate(from)?, rate(to)?))", "Some(convert(amount, rate(to)?, rate(from)?))"),
    ("conversion is rounded to cents", "policy.rs", "Some(convert(amount, rate(from)?, rate(to)?))", "Some(Amount(convert(amount, rate(from)?, rate(to)?).0 / 10_000 * 10_000))"),
    ("consent is not asked", "admission.rs", "let who = if consent {", "let who = if consent || !consent {"),
    ("an empty list of categories grants all", "admission.rs", "Some(categories) => categories.0.split(',')", "Some(categories) if categories.0.is_empty() => true,\n        Some(categories) => categories.0.split(',')"),
    ("free mail is a company", "company.rs", "filter(|domain| !is_free_mail(domain))", "filter(|domain| !domain.is_empty())"),
    ("e-mails of users without a name for it are ignored", "admission.rs", "let tells = name == \"identify\" || who.user_id.is_some();", "let tells = name == \"identify\";"),
    ("a user_id is never an address", "admission.rs", "let id_email = who.user_id.as_deref().and_then(company::normalise_email);", "let id_email: Option<String> = None;"),
    ("domains keep their www", "company.rs", "strip_prefix(\"www.\")", "strip_prefix(\"wwww.\")"),
    ("future events stay in the future", "time/instant.rs", "Some(told) if told > received.plus_ms(MAX_AHEAD_MS)", "Some(told) if told > received.plus_ms(i64::MAX)"),
    ("a late day is put at the end", "facts.rs", "let at = self.entries.partition_point(|entry| (entry.day, entry.tag) < (day, tag));", "let at = if self.entries.last().is_some_and(|e| (e.day, e.tag) == (day, tag)) { self.entries.len() - 1 } else { self.entries.len() };"),
    ("averages divide by days", "answers.rs", "arpu: ratio(total_revenue, distinct::total(&self.rollups.unique_users, window)),", "arpu: ratio(total_revenue, window.days().count() as u64),"),
    ("the last day of a window is left out", "answers.rs", "self.rollups.revenue.range(window.start.0, window.end.0)", "self.rollups.revenue.range(window.start.0, window.end.0 - 1)"),
]


def make_copy():
    """The domain, the model and the histories, in a workspace of their own."""
    tree = WORK / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    for part in ("domain", "tests/model", "tests/histories"):
        # New times: cargo would take the copy for older than the build of the last planted bug.
        shutil.copytree(ROOT / part, tree / part, copy_function=shutil.copyfile)
    manifest = (ROOT / "Cargo.toml").read_text()
    manifest = manifest[: manifest.index("[package]")]
    manifest = re.sub(r"members = \[.*?\]", 'members = ["domain", "tests/model", "tests/histories"]', manifest, count=1, flags=re.S)
    # Bugs leave things unused; and what runs a thousand histories had better be fast.
    manifest += '\n[profile.dev]\nopt-level = 1\ndebug = false\n[profile.dev.package.headcount-domain]\nopt-level = 0\n'
    (tree / "Cargo.toml").write_text(manifest)
    shutil.copy(ROOT / "Cargo.lock", tree / "Cargo.lock")
    return tree


def trial(tree):
    """Runs the comparison. Returns (passed, last lines)."""
    command = ["cargo", "test", "--quiet", "-p", "headcount-domain", "--test", "against_model"]
    environment = dict(os.environ, CARGO_TARGET_DIR=str(WORK / "build"), HEADCOUNT_TRIALS=TRIALS, RUST_BACKTRACE="0", RUSTFLAGS="-Awarnings")
    run = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=900)
    output = run.stdout + run.stderr
    if "error: could not compile" in output:
        return None, output[-3000:]
    return run.returncode == 0, output


def main():
    words = sys.argv[1:]
    bugs = [bug for bug in BUGS if not words or any(word in bug[0] for word in words)]
    tree = make_copy()
    passed, output = trial(tree)
    if not passed:
        print("the domain as it is does not pass:", output[-3000:])
        return 1
    survived = []
    for name, file, *changes in bugs:
        path = tree / "domain" / "src" / file
        source = path.read_text()
        wrong = source
        for there, planted in zip(changes[::2], changes[1::2]):
            if wrong.count(there) != 1:
                print(f"STALE     {name}: its text occurs {wrong.count(there)} times in {file}")
                wrong = None
                break
            wrong = wrong.replace(there, planted)
        if wrong is None:
            survived.append(name)
            continue
        path.write_text(wrong)
        began = time.monotonic()
        passed, output = trial(tree)
        path.write_text(source)
        seconds = time.monotonic() - began
        if passed is None:
            print(f"BROKEN    {name}: does not compile\n{output}")
            survived.append(name)
        elif passed:
            print(f"SURVIVED  {name} ({seconds:.0f} s)", flush=True)
            survived.append(name)
        else:
            seed = re.search(r"seed (\d+)", output)
            how = f"seed {seed.group(1)}" if seed else "a panic"
            print(f"caught    {name} ({how}, {seconds:.0f} s)", flush=True)
    print(f"{len(bugs) - len(survived)} passed, {len(survived)} failed")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
