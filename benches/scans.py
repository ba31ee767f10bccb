#!/usr/bin/env python3
"""Benchmarks aggregates, filtered unique users, goals, funnels and journeys over sealed events, asked for the first time and again, compared with DuckDB's time
for the equivalent SQL over the same Parquet files.

First compares every answer, cell by cell; if one differs, measures nothing and exits with code 1.

usage: scans.py N DIR [--bin FILE] [--rounds 5] [--memory 1GiB] [--only REGEX]      (requires duckdb; a release build of headcount)

N events of N / 7 people over 60 days are generated, imported and sealed; DIR is used again by the next run. In each round the server is started anew,
so that nothing is kept, each question is asked once, then five times again, and DuckDB answers it on a connection of its own.
"""
import argparse
import datetime
import json
import os
import random
import re
import statistics
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path

HERE = sys.path.pop(0)  # keep http.py in this directory from shadowing the standard module
import http.client
sys.path.insert(0, HERE)

import duckdb

DAYS = 60
START = datetime.date(2026, 6, 1)
BROWSERS = [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Safari/605.1.15",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:127.0) Gecko/20100101 Firefox/127.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36 Edg/126.0.0.0",
]
NAMES = ["pageview"] * 62 + ["click"] * 15 + ["search"] * 8 + ["feature_used"] * 10 + ["login"] * 5
PLANS = ["free", "free", "free", "pro", "pro", "team"]
SOURCES = ["google", "newsletter", "bing", "linkedin"]


def generate(n, file):
    """Writes the events in the order of time: sessions of 5 events on average, of people who sign in in half of them."""
    r = random.Random(42)
    people, at, step = n // 7, datetime.datetime.combine(START, datetime.time(), datetime.timezone.utc).timestamp() * 1000, DAYS * 86_400_000 / (n + 1)
    open_sessions = []
    with open(file, "w", encoding="utf-8") as out:
        for number in range(n):
            at += step
            if len(open_sessions) < 200 or r.random() < 0.2:
                person = int(people * r.random() ** 2)
                session = [person, r.random() < 0.5, True]
                if len(open_sessions) < 200:
                    open_sessions.append(session)
                else:
                    open_sessions[r.randrange(200)] = session
            else:
                session = open_sessions[r.randrange(200)]
            person, signs_in, is_first = session
            page = int(400 * r.random() ** 3)
            url = f"https://app.example.com/docs/section-{page % 20}/page-{page}"
            if is_first and r.random() < 0.3:
                source = SOURCES[person % 4]
                url += f"?utm_source={source}&utm_medium=cpc&utm_campaign=c{person % 12}"
            session[2] = False
            event = {"name": r.choice(NAMES), "timestamp": int(at), "anonymous_id": f"device-{person:09d}", "url": url,
                     "user_agent": BROWSERS[person % 4], "metadata": {"plan": PLANS[person % 6], "n": number % 97}}
            if signs_in and not is_first:
                event["user_id"] = f"user-{person:09d}"
            out.write(json.dumps(event, separators=(",", ":")) + "\n")


class Server:
    def __init__(self, binary, data, memory):
        self.binary, self.data = binary, data
        arguments = [binary, "serve", "--data-dir", data, "--listen", "127.0.0.1:0", "--memory", memory, "--seal-after", "1000h", "--question-timeout", "10m"]
        self.process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = next((line for line in self.process.stdout if "listening on" in line), None)
        if line is None:
            raise SystemExit("the server did not start")
        self.connection = http.client.HTTPConnection(line.split("//")[-1].strip().rstrip("/"), timeout=600)
        keys = json.loads((data / "credentials.json").read_text())
        self.token, self.project = keys["api_token"], keys["project_id"]
        while self.request("GET", "/readyz")[0] != 200:
            time.sleep(0.1)
        self.wait_until_idle()

    def wait_until_idle(self):
        """After a start, the server reads all sealed files once to find damage, for some seconds a gigabyte."""
        before = None
        while before is None or self.cpu_seconds() - before > 0.02:
            before = self.cpu_seconds()
            time.sleep(1)

    def request(self, method, path, body=None):
        headers = {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
        self.connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = self.connection.getresponse()
        return answer.status, answer.read()

    def ask(self, question):
        path = next((path for field, path in PATHS.items() if field in question), "count-unique-users-per-day")
        began = time.perf_counter()
        status, body = self.request("POST", f"/projects/{self.project}/analytics/{path}", question)
        took = time.perf_counter() - began
        if status != 200:
            raise SystemExit(f"{question}: {status} {body}")
        return took, json.loads(body, parse_float=Decimal)

    def define_goal(self):
        """The goal `login`, unless an earlier run defined it."""
        path = f"/projects/{self.project}/goals"
        if not json.loads(self.request("GET", path)[1])["goals"]:
            status, body = self.request("POST", path, {"name": "login", "event_name": "login"})
            if status != 201:
                raise SystemExit(f"the goal: {status} {body}")

    def cpu_seconds(self):
        """The processor time of all threads so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak_mb(self):
        return int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{self.process.pid}/status").read_text()).group(1)) / 1024

    def stop(self):
        self.process.terminate()
        self.process.wait()


def window(first=0, last=DAYS - 1):
    day = lambda after: (START + datetime.timedelta(days=after)).isoformat()
    return {"start_date": day(first), "end_date": day(last)}


LINKS = """links as (select anonymous_id, arg_min(user_id, position) linked from read_parquet(getvariable('f'))
  where user_id is not null and anonymous_id is not null and not set_aside group by all)"""
IDENTIFIED = "read_parquet(getvariable('f')) e left join links using (anonymous_id)"
IDENTITY = "coalesce('u' || user_id, 'u' || linked, 'a' || anonymous_id)"
USERS = f"""with {LINKS}, matching as (select day, {IDENTITY} identity from {IDENTIFIED} where WHERE and not set_aside),
days as (select day, count(distinct identity) users from matching group by day)
select day::varchar, users from days union all select 'all', (select count(distinct identity) from matching) order by 1"""
GROUPS = "from read_parquet(getvariable('f')) where day between '{start_date}' and '{end_date}' and not set_aside"

# People, their events in order, and the start of the latest chain to each step.
FUNNEL = f"""with {LINKS}, events as (select timestamp t, position p, {IDENTITY} identity, {{tests}} from {IDENTIFIED}
  where day between '{{start_date}}' and '{{last_date}}' and not set_aside),
first as (select *, max(case when is1 then t end) over w start1 from events window w as (partition by identity order by t, p rows between unbounded preceding and 1 preceding)),
second as (select *, max(case when is2 and t - start1 <= interval 7 days then start1 end) over w start2 from first
  window w as (partition by identity order by t, p rows between unbounded preceding and 1 preceding))
select count(distinct case when is1 then identity end), count(distinct case when is2 and t - start1 <= interval 7 days then identity end),
  count(distinct case when is3 and t - start2 <= interval 7 days then identity end) from second"""
SESSIONS = f"""identified as (select timestamp t, position p, name, {IDENTITY} identity from {IDENTIFIED} where not set_aside),
gaps as (select *, lag(t) over w before from identified window w as (partition by identity order by t, p)),
numbered as (select *, sum((before is null or t - before > interval 30 minutes)::int) over w session from gaps window w as (partition by identity order by t, p)),
changed as (select *, lag(name) over (partition by identity, session order by t, p) former from numbered),
steps as (select *, row_number() over (partition by identity, session order by t, p) step from changed where former is null or former <> name)"""
WHO_DID = f"identity in (select {IDENTITY} from {IDENTIFIED} where name = 'search' and not set_aside group by 1 having count(*) >= 3)"
# The endpoints, by a field that only their questions have.
PATHS = {"compare": "goals", "steps": "funnel", "by": "journeys", "group_by": "aggregate", "metadata_field": "aggregate"}

# Name, question, SQL.
QUESTIONS = [
    ("events by browser", {**window(), "group_by": "browser", "limit": 100},
     f"select browser v, count(*) c {GROUPS} group by v order by c desc, v nulls last"),
    ("sum of a number by `metadata.plan`", {**window(), "metadata_field": "plan", "sum_metadata_field": "n", "limit": 100},
     f"""select "metadata.plan" v, count(*) c, sum("metadata.n"::decimal(18, 0)) s {GROUPS} group by v order by s desc, v nulls last"""),
    ("pageviews by page", {**window(), "group_by": "url", "event_name": "pageview", "limit": 1000},
     f"select split_part(url, '?', 1) v, count(*) c {GROUPS} and name = 'pageview' group by v order by c desc, v nulls last"),
    ("one day of 60, by name", {**window(50, 50), "group_by": "name", "limit": 100},
     f"select name v, count(*) c {GROUPS} group by v order by c desc, v nulls last"),
    ("users of an event name, per day", {**window(), "event_name": "login"}, USERS.replace("WHERE", "name = 'login'")),
    ("users of a plan, per day", {**window(), "filters": [{"field": "metadata.plan", "operator": "is", "value": "team"}]},
     USERS.replace("WHERE", """"metadata.plan" = '"team"'""")),
    ("events by `entry_url`", {**window(), "group_by": "entry_url", "limit": 1000},
     f"""with {LINKS}, identified as (select timestamp, position, split_part(url, '?', 1) page, {IDENTITY} identity from {IDENTIFIED} where not set_aside),
     gaps as (select *, lag(timestamp) over w previous from identified window w as (partition by identity order by timestamp, position)),
     numbered as (select *, sum((previous is null or timestamp - previous > interval 30 minutes)::int) over w session from gaps
       window w as (partition by identity order by timestamp, position)),
     entries as (select arg_min(page, (timestamp, position)) v, count(*) n from numbered group by identity, session)
     select v, sum(n)::bigint c from entries group by v order by c desc, v nulls last"""),
    ("a goal: login", {**window(), "compare": None},
     f"""with {LINKS}, chosen as (select name, {IDENTITY} identity from {IDENTIFIED} where day between '{{start_date}}' and '{{end_date}}' and not set_aside)
     select count(*) filter (name = 'login'), count(distinct identity) filter (name = 'login'), count(distinct identity) from chosen"""),
    ("users who searched three times, per day", {**window(), "people": [{"did": {"event_name": "search"}, "at_least": 3, "within": "ever"}]},
     USERS.replace("WHERE", WHO_DID)),
    ("a funnel of names: search, feature_used, login", {**window(0, DAYS - 8), "steps": [{"event_name": name} for name in ("search", "feature_used", "login")]},
     FUNNEL.replace("{tests}", "name = 'search' is1, name = 'feature_used' is2, name = 'login' is3")),
    ("a funnel that any event fits", {**window(0, DAYS - 8), "steps": [{"event_name": "pageview"}, {"event_name": "pageview"}, {"event_name": "pageview"}]},
     FUNNEL.replace("{tests}", "name = 'pageview' is1, is1 is2, is1 is3")),
    ("journeys by event name", {**window(), "by": "event_name", "depth": 4, "rows": 50},
     f"with {LINKS}, {SESSIONS} select step, name v, count(*) c from steps where step <= 4 group by all order by step, c desc, v"),
]


class DuckDb:
    def __init__(self, archive):
        self.db = duckdb.connect()
        files = [str(archive / file["name"]) for file in json.loads((archive / "manifest.json").read_text())["files"]]
        self.db.execute(f"SET VARIABLE f = {files!r}")

    def ask(self, sql, question):
        # Steps after the first may come 7 days after the window. A chain begins in it.
        last = datetime.date.fromisoformat(question["end_date"]) + datetime.timedelta(days=7)
        is_in_window = f"is1 and t < '{datetime.date.fromisoformat(question['end_date']) + datetime.timedelta(days=1)}'"
        sql = sql.replace("when is1 then", f"when {is_in_window} then").replace("{last_date}", last.isoformat())
        text = sql.replace("{start_date}", question["start_date"]).replace("{end_date}", question["end_date"])
        began = time.perf_counter()
        rows = self.db.execute(text).fetchall()
        return time.perf_counter() - began, rows


def same(question, answer, rows):
    if "compare" in question:
        [goal] = answer["goals"]
        return (goal["conversions"], goal["converters"], answer["unique_users"]) == rows[0]
    if "steps" in question:
        return [step["entities"] for step in answer["steps"]] == list(rows[0])
    if "by" in question:
        nodes = [(step, node["value"], node["sessions"]) for step, nodes in enumerate(answer["steps"], 1) for node in nodes["nodes"]]
        return nodes == [tuple(row) for row in rows]
    if "limit" not in question:
        counts = {day["day"]: day["unique_users"] for day in answer["series"] if day["unique_users"]}
        return {**counts, "all": answer["total_unique_users"]} == {day: users for day, users in rows if users}
    value = lambda row: row["value"] if "metadata_field" not in question else json.dumps(row["value"])
    got = [(value(row), row["count"], *([row["total"]] if "total" in row else [])) for row in answer["rows"]]
    return got == [tuple(row) for row in rows[:question["limit"]]] and answer["total_groups"] == len(rows)


def prepare(options):
    data, events = options.dir / "data", options.dir / "events.ndjson"
    if (data / "sealed").exists():
        return data
    options.dir.mkdir(parents=True, exist_ok=True)
    run = lambda *arguments: subprocess.run([options.bin, *arguments, "--data-dir", data], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    generate(options.n, events)
    run("init")
    run("import", str(events))
    run("archive", "seal")
    events.unlink()
    (data / "sealed").touch()
    return data


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("n", type=int)
    parser.add_argument("dir", type=Path)
    parser.add_argument("--bin", type=Path, default=Path(__file__).resolve().parents[1] / "target/release/headcount")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory", default="1GiB")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    data = prepare(options)
    questions = [question for question in QUESTIONS if re.search(options.only, question[0])]
    first, first_cpu, again, sql_times, sql_cpu, ratios = ({name: [] for name, _, _ in questions} for _ in range(6))
    peak = 0
    for _ in range(options.rounds):
        server = Server(options.bin, data, options.memory)
        try:
            database = DuckDb(data / "archive" / f"project={server.project}")
            # Open what a first request opens.
            server.ask({**window(0, 0), "group_by": "os", "limit": 1})
            server.define_goal()
            for name, question, sql in questions:
                cpu = server.cpu_seconds()
                took, answer = server.ask(question)
                first[name].append(took)
                first_cpu[name].append(server.cpu_seconds() - cpu)
                again[name].extend(server.ask(question)[0] for _ in range(5))
                cpu = time.process_time()
                took, rows = database.ask(sql, question)
                sql_times[name].append(took)
                sql_cpu[name].append(time.process_time() - cpu)
                ratios[name].append(first[name][-1] / took)
                if not same(question, answer, rows):
                    raise SystemExit(f"{name}: the answers differ: {str(answer)[:400]} {rows[:5]}")
            peak = max(peak, server.peak_mb())
        finally:
            server.stop()
    print(f"peak memory of the server: {peak:.0f} MB\n")
    print("| question | DuckDB | of it CPU | first | of it CPU | first / DuckDB | again | DuckDB / again |\n|---|---|---|---|---|---|---|---|")
    for name, _, _ in questions:
        sql, sql_used, one, used, more, ratio = (
            statistics.median(times[name]) for times in (sql_times, sql_cpu, first, first_cpu, again, ratios))
        print(f"| {name} | {sql * 1000:.0f} ms | {sql_used:.2f} s | {one * 1000:.0f} ms | {used:.2f} s | {ratio:.2f} | {more * 1000:.2f} ms | {sql / more:.0f} |")


if __name__ == "__main__":
    main()
