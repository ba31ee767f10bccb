#!/usr/bin/env python3
"""Generates synthetic events of a product's users, deterministically: `events.parquet`, and `track-P.ndjson` with the events of
project P as bodies of POST /track, in the order of recording.

usage: dataset.py N DIR [--start 2026-06-01]          (requires numpy and pyarrow)

60 days from the start, in sessions of 5 events on average; N / 10 users with a Zipf distribution of activity; 8 projects, of which the
first has 37 % of the events; 2 % purchases in three currencies. The data contains the difficult cases on purpose: events and whole
visits recorded hours or days late; visitors who sign in in the middle of a session, or never; devices shared by several users; users
of two projects; gaps of exactly 30 minutes, and gaps of 0; visits that start in the same millisecond; companies reported by one event
in four, users who report two companies, domains in several spellings; names reported repeatedly; refunds, values of 0, and orders sent
twice with different values.
"""
import argparse
import datetime
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

DAY_MS = 86_400_000
DAYS = 60
PROJECTS = 8
HOURS = np.array([2, 1, 1, 1, 1, 2, 4, 7, 9, 10, 10, 10, 9, 10, 10, 10, 9, 8, 7, 6, 6, 5, 4, 3], float)
BROWSERS = np.array("Chrome,Safari,Edge,Firefox,Samsung Internet,Opera,Brave,Vivaldi,UC Browser,DuckDuckGo,Whale,Other".split(","))
COUNTRIES = np.array("US,DE,GB,IN,FR,CA,BR,JP,AU,NL,ES,IT,SE,PL,MX,KR,ZA,SG,CH,NO".split(","))
NAMES = np.array("$pageview,click,signup,login,feature_used,search,add_to_cart,export,invite,purchase,group".split(","))
NAME_SHARES = [.62, .12, .01, .05, .10, .05, .03, .01, .01]
PURCHASE, GROUP = 9, 10
SOURCES = np.array(["", "google", "newsletter", "facebook", "twitter", "linkedin", "producthunt", "bing"])
MEDIUMS = np.array(["", "cpc", "email", "social", "social", "social", "referral", "cpc"])
REFERRERS = np.array(["", "https://www.google.com/", "https://news.ycombinator.com/", "https://t.co/", "https://www.reddit.com/r/webdev",
                      "https://duckduckgo.com/", "https://github.com/"])
REFERRER_SHARES = [.45, .3, .05, .05, .05, .05, .05]
CURRENCIES = np.array(["", "USD", "EUR", "GBP"])
# The number of events whose texts are in memory at once: numpy gives each the room of the longest.
AT_ONCE = 1_000_000


def users_of(n):
    return max(100, n // 10)


def zipf(count, exponent):
    weights = 1 / np.arange(1, count + 1) ** exponent
    return weights / weights.sum()


def texts(condition, values):
    """Returns a column with the values where the condition holds, and null elsewhere."""
    return pa.array(values, mask=~condition)


def joined(*parts):
    result = np.asarray(parts[0], dtype=str)
    for part in parts[1:]:
        result = np.char.add(result, np.asarray(part, dtype=str))
    return result


def make_sessions(r, n, start_ms, users):
    """Returns for each event its user, time, session, position in the session, and whether it is on the second device."""
    sessions = int(n / 4.5) + 50
    popular = r.permutation(users)
    user = popular[r.choice(users, sessions, p=zipf(users, 0.8))]
    hour = r.choice(24, sessions, p=HOURS / HOURS.sum())
    begin = start_ms + r.integers(0, DAYS, sessions) * DAY_MS + hour * 3_600_000 + r.integers(0, 3_600_000, sessions)
    # A weekly newsletter at 9:00 causes visits.
    begin = np.where(r.random(sessions) < 0.03, begin // (7 * DAY_MS) * 7 * DAY_MS + 9 * 3_600_000, begin)
    begin = np.maximum(begin, start_ms)
    ends = np.cumsum(r.geometric(1 / 5.0, sessions))
    assert ends[-1] >= n
    session = np.searchsorted(ends, np.arange(n), side="right")
    second_device = (r.random(sessions) < 0.25)[session]
    first = np.r_[True, session[1:] != session[:-1]]
    place = np.arange(n) - np.maximum.accumulate(np.where(first, np.arange(n), 0))
    gap = (r.exponential(60_000, n) + 500).astype(np.int64)
    # A gap of 30 minutes continues the session; one millisecond more starts a new one.
    chance = r.random(n)
    gap = np.where(chance < 0.005, 1_800_000, np.where(chance < 0.01, 1_800_001, np.where(chance < 0.04, 0, gap)))
    # Events every 20 minutes that alternate between two projects: a session per project, with longer gaps.
    gap = np.where(second_device & (user[session] % 10 == 0), 1_200_000, gap)
    gap[first] = 0
    total = np.cumsum(gap)
    at_ms = begin[session] + total - np.maximum.accumulate(np.where(first, total, 0))
    return user[session], at_ms, session, place, second_device


def draw(n, start_ms):
    """Returns the numbers that make up the events, by column, in the order of recording. They have no texts, which take far more memory."""
    r = np.random.default_rng(42)
    users = users_of(n)
    companies = max(10, users // 40)
    user, at_ms, session, place, second_device = make_sessions(r, n, start_ms, users)
    sessions, first = session[-1] + 1, place == 0
    of_project = r.choice(PROJECTS, users, p=zipf(PROJECTS, 1.0)) + 1
    browser = r.choice(len(BROWSERS), (2, users), p=zipf(len(BROWSERS), 1.2))
    country = r.choice(len(COUNTRIES), users, p=zipf(len(COUNTRIES), 0.9))
    of_company = np.where(r.random(users) < 0.7, r.choice(companies, users, p=zipf(companies, 0.7)), -1)

    elsewhere = second_device & (user % 10 == 0) & (place % 3 == 1)
    project = np.where(elsewhere, of_project[user] % PROJECTS + 1, of_project[user])
    signs_in_at = np.where(r.random(sessions) < 0.6, 0, r.integers(1, 6, sessions))
    signed_in = place >= signs_in_at[session]
    company = of_company[user]
    shared = second_device & (user % 4 == 3)

    name = np.where(r.random(n) < 0.02, PURCHASE, r.choice(9, n, p=NAME_SHARES))
    page = r.choice(400, n, p=zipf(400, 0.9))
    source = np.where(first, np.where(r.random(sessions) < 0.3, r.integers(1, 8, sessions), 0)[session], 0)
    campaign = np.where(source > 0, r.integers(1, 13, n), 0)
    referrer = np.where(first, r.choice(7, sessions, p=REFERRER_SHARES)[session], 0)

    bought = name == PURCHASE
    currency = np.where(bought, r.choice([1, 1, 1, 2, 2, 3], n), 0)
    minor = np.round(np.exp(r.normal(8.0, 0.9, n))).astype(np.int64)
    chance = r.random(n)
    minor = np.where(chance < 0.05, -minor, np.where(chance < 0.06, 0, minor))

    reported = r.random(n) < 0.25
    company = np.where((user % 5 == 2) & (r.random(n) < 0.5), (company + 1) % companies, company)
    is_company = reported & (of_company[user] >= 0)
    is_team = reported & (of_company[user] < 0)
    number = np.where(is_company, company, user % max(5, users // 40))
    is_domain = is_company & (number % 2 == 0)
    is_spelled = is_domain & (r.random(n) < 0.1)
    names_it = reported & ~bought & (r.random(n) < 0.08)
    name = np.where(names_it, GROUP, name)
    version = r.integers(1, 4, n)

    # Events whose order of recording matters are late more often.
    late = r.random(n) < np.where(shared | names_it | (user % 5 == 2), 0.3, 0.05)
    delay_ms = np.where(late, r.exponential(np.where(r.random(n) < 0.5, 3 * DAY_MS, DAY_MS // 4), n), 0)
    # Whole visits of devices that were offline are late as well.
    offline = r.random(sessions)[session] < np.where(shared, 0.3, 0.03)
    delay_ms = np.where(offline, r.exponential(7 * DAY_MS, sessions)[session], delay_ms)
    recorded_ms = at_ms + delay_ms.astype(np.int64)
    order = np.argsort(recorded_ms, kind="stable")
    second = second_device.astype(int)
    columns = {
        "project": project, "at_ms": at_ms, "user": user, "signed_in": signed_in, "second_device": second_device, "shared": shared, "name": name,
        "page": page, "referrer": referrer, "source": source, "campaign": campaign, "browser": browser[second, user], "country": country[user],
        "reported": reported, "is_company": is_company, "number": number, "is_domain": is_domain, "is_spelled": is_spelled, "names_it": names_it,
        "version": version, "minor": minor, "bought": bought, "currency": currency,
    }
    return {name: column[order] for name, column in columns.items()}


def table(columns, begin, end, users):
    """Returns some events as a table. `sent_group` has the spelling that the event uses."""
    of = {name: column[begin:end] for name, column in columns.items()}
    user, number, is_company = of["user"], of["number"], of["is_company"]
    device = joined(np.where(of["second_device"], "b", "a"), np.char.zfill((user * 7919 % 1_000_003).astype(str), 16))
    device = np.where(of["shared"], joined("c", user % max(5, users // 200)), device)
    key = np.where(is_company, joined("co", number, np.where(of["is_domain"], ".example", "")), joined("team-", number))
    spelled = np.where(of["is_spelled"], joined("https://www.Co", number, ".example/"), key)
    title = joined(np.where(is_company, "Company ", "Team "), number, " v", of["version"])
    host = joined("app", of["project"], ".example.com")
    path = np.where(of["page"] > 0, joined("/docs/section-", of["page"] % 20, "/page-", of["page"]), "/")
    position = np.arange(begin, end)
    return pa.table({
        "position": pa.array(position),
        "project": pa.array(of["project"].astype(np.int32)),
        "at_ms": pa.array(of["at_ms"]),
        "user_id": texts(of["signed_in"], joined("u", user)),
        "anonymous_id": pa.array(device),
        "name": pa.array(NAMES[of["name"]]),
        "page": pa.array(joined("https://", host, path)),
        "hostname": pa.array(host),
        "referrer": texts(of["referrer"] > 0, REFERRERS[of["referrer"]]),
        "utm_source": texts(of["source"] > 0, SOURCES[of["source"]]),
        "utm_medium": texts(of["source"] > 0, MEDIUMS[of["source"]]),
        "utm_campaign": texts(of["source"] > 0, joined("camp-", of["campaign"])),
        "browser": pa.array(BROWSERS[of["browser"]]),
        "country": pa.array(COUNTRIES[of["country"]]),
        "group_type": texts(of["reported"], np.where(is_company, "company", "team")),
        "group_key": texts(of["reported"], key),
        "sent_group": texts(of["reported"], spelled),
        "group_name": texts(of["names_it"], title),
        "minor": pa.array(of["minor"], mask=~of["bought"]),
        "currency": texts(of["bought"], CURRENCIES[of["currency"]]),
        "external_id": texts(of["bought"], joined("ord-", position)),
    })


def body(event):
    """Returns the body of the event for POST /track."""
    campaign = [f"{name}={event[name]}" for name in ("utm_source", "utm_medium", "utm_campaign") if event[name]]
    metadata = {"browser": event["browser"], "country": event["country"], "name": event["group_name"]}
    fields = {"name": event["name"], "timestamp": event["at_ms"], "user_id": event["user_id"], "anonymous_id": event["anonymous_id"],
              "url": event["page"] + ("?" + "&".join(campaign) if campaign else ""), "hostname": event["hostname"],
              "referrer": event["referrer"], "group_type": event["group_type"], "group_id": event["sent_group"],
              "value": None if event["minor"] is None else event["minor"] / 100, "currency": event["currency"],
              "external_id": event["external_id"], "metadata": {key: value for key, value in metadata.items() if value is not None}}
    return {key: value for key, value in fields.items() if value is not None}


def write_bodies(events, files):
    """Appends the bodies of the events to the files of their projects. Returns the number of repeated orders."""
    repeated = 0
    encode = json.JSONEncoder(separators=(",", ":")).encode
    for batch in events.to_batches(max_chunksize=50_000):
        for event in batch.to_pylist():
            fields, file = body(event), files[event["project"]]
            file.write(encode(fields) + "\n")
            if event["external_id"] and event["position"] % 5 == 0:
                # Repeat the order with another value: it must count as a duplicate.
                file.write(encode(fields | {"value": (event["minor"] + 100) / 100}) + "\n")
                repeated += 1
    return repeated


def write(n, directory, start):
    """Writes the files. Returns the number of repeated orders."""
    directory.mkdir(parents=True, exist_ok=True)
    start_ms = int(datetime.datetime.combine(start, datetime.time(), datetime.timezone.utc).timestamp() * 1000)
    columns = draw(n, start_ms)
    files = {project: open(directory / f"track-{project}.ndjson", "w", encoding="utf-8") for project in range(1, PROJECTS + 1)}
    parquet, repeated = None, 0
    for begin in range(0, n, AT_ONCE):
        part = table(columns, begin, min(begin + AT_ONCE, n), users_of(n))
        public = part.drop_columns(["sent_group"])
        parquet = parquet or pq.ParquetWriter(directory / "events.parquet", public.schema, compression="zstd")
        parquet.write_table(public)
        repeated += write_bodies(part, files)
    if parquet:
        parquet.close()
    for file in files.values():
        file.close()
    return repeated


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("n", type=int)
    parser.add_argument("dir", type=Path)
    parser.add_argument("--start", type=datetime.date.fromisoformat, default=datetime.date(2026, 6, 1))
    options = parser.parse_args()
    repeated = write(options.n, options.dir, options.start)
    print(f"{options.n:,} events and {repeated:,} repeated orders in {options.dir}")


if __name__ == "__main__":
    main()
