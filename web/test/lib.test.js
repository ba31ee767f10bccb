// What the page computes by itself: days, periods, filters in addresses, files, numbers.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "vite";

process.env.TZ = "Pacific/Auckland";
Object.defineProperty(globalThis, "navigator", { value: { language: "en-US" }, configurable: true });

const entry = fileURLToPath(new URL("lib.ts", import.meta.url));
const [{ output }] = await build({ configFile: false, logLevel: "silent", build: { write: false, minify: false, lib: { entry, formats: ["es"] } } });
const lib = await import(`data:text/javascript,${encodeURIComponent(output[0].code)}`);

const TODAY = "2026-03-31";
const window = (query) => {
  const { start_date, end_date, days } = lib.windowOf(new URLSearchParams(query), TODAY);
  return [start_date, end_date, days];
};

test("periods are whole days of the organization", () => {
  const table = {
    "": ["2026-03-04", TODAY, 28],
    "period=day": [TODAY, TODAY, 1],
    "period=yesterday": ["2026-03-30", "2026-03-30", 1],
    "period=7d": ["2026-03-25", TODAY, 7],
    "period=91d": ["2025-12-31", TODAY, 91],
    "period=month": ["2026-03-01", TODAY, 31],
    "period=last_month": ["2026-02-01", "2026-02-28", 28],
    "period=year": ["2026-01-01", TODAY, 90],
    "period=12mo": ["2025-04-01", TODAY, 365],
    "period=custom&from=2024-02-29&to=2024-03-01": ["2024-02-29", "2024-03-01", 2],
    // What can't be asked is as if nothing was said.
    "period=custom&from=2024-03-02&to=2024-03-01": ["2026-03-04", TODAY, 28],
    "period=custom&from=2024-13-01&to=2025-03-01": ["2026-03-04", TODAY, 28],
    "period=custom&from=2001-01-01&to=2026-01-01": ["2026-03-04", TODAY, 28],
    "period=other": ["2026-03-04", TODAY, 28],
  };
  for (const [query, expected] of Object.entries(table)) assert.deepEqual(window(query), expected, query);
  // What the name says.
  assert.deepEqual([window("period=all"), lib.PERIODS.find(({ id }) => id === "all").name], [["2016-04-01", TODAY, 3_652], "Last 10 years"]);
});

test("a floor moves with the day and never falls, and cuts what begins below it", () => {
  const floor = (retention_days, retention_floor) => lib.floorOf({ retention_days, retention_floor }, TODAY);
  assert.deepEqual([floor(null, null), floor(30, null), floor(1, null)], [null, "2026-03-02", TODAY]);
  // The server raises it within an hour. A retention that is longer now brings nothing back.
  assert.deepEqual([floor(30, "2026-03-01"), floor(400, "2026-03-02"), floor(null, "2026-03-02")], ["2026-03-02", "2026-03-02", "2026-03-02"]);
  const kept = (query, first) => {
    const days = lib.kept(lib.windowOf(new URLSearchParams(query), TODAY), first);
    return days && [days.start_date, days.end_date, days.days];
  };
  assert.deepEqual(kept("", null), ["2026-03-04", TODAY, 28]);
  assert.deepEqual(kept("", "2026-03-04"), ["2026-03-04", TODAY, 28]);
  assert.deepEqual(kept("", "2026-03-05"), ["2026-03-05", TODAY, 27]);
  assert.deepEqual(kept("period=all", "2026-03-02"), ["2026-03-02", TODAY, 30]);
  assert.deepEqual(kept("period=last_month", "2026-02-28"), ["2026-02-28", "2026-02-28", 1]);
  assert.equal(kept("period=last_month", "2026-03-01"), null);
  // Hours are made from events.
  const intervals = (query, first) => lib.intervals(lib.windowOf(new URLSearchParams(query), TODAY), first);
  assert.deepEqual([intervals("period=yesterday", "2026-03-30"), intervals("period=yesterday", TODAY)], [["hour"], ["day"]]);
  assert.deepEqual([intervals("period=7d", "2026-03-25"), intervals("period=7d", "2026-03-26")], [["day", "hour"], ["day"]]);
});

test("a window is compared with as many days before it, or with the same days of the year before", () => {
  const former = (query) => {
    const asked = new URLSearchParams(query);
    const days = lib.formerOf(asked, lib.windowOf(asked, TODAY));
    return days && [days.start_date, days.end_date];
  };
  assert.deepEqual(former(""), ["2026-02-04", "2026-03-03"]);
  assert.deepEqual(former("compare=previous_year"), ["2025-03-04", "2025-03-31"]);
  assert.deepEqual(former("compare=previous_year&period=custom&from=2024-02-29&to=2024-03-01"), ["2023-02-28", "2023-03-01"]);
  assert.deepEqual([former("compare=none"), former("period=all")], [null, null]);
});

test("instants are of the organization's day", () => {
  const time = "2026-11-24T23:30:00Z";
  assert.deepEqual(["UTC", "Europe/Berlin", "America/New_York"].map((zone) => lib.dayAt(time, zone)), ["Nov 24, 2026", "Nov 25, 2026", "Nov 24, 2026"]);
});

test("today is the organization's", () => {
  const now = Date.parse("2026-11-24T23:30:00Z");
  assert.equal(lib.today("UTC", now), "2026-11-24");
  assert.equal(lib.today("Europe/Berlin", now), "2026-11-25");
  assert.equal(lib.today("America/New_York", now), "2026-11-24");
});

test("months have their own lengths", () => {
  assert.equal(lib.addMonths("2024-03-31", -1), "2024-02-29");
  assert.equal(lib.addMonths("2026-01-15", -1), "2025-12-15");
  assert.equal(lib.daysBetween("2024-02-28", "2024-03-01"), 3);
});

test("intervals suit their windows, and charts stay within 400 points", () => {
  for (const query of ["period=day", "period=7d", "", "period=91d", "period=12mo", "period=all"]) {
    const shown = lib.windowOf(new URLSearchParams(query), TODAY);
    for (const interval of lib.intervals(shown)) {
      const points = { hour: shown.days * 24, day: shown.days, week: shown.days / 7, month: shown.days / 28 }[interval];
      assert.ok(points <= 400, `${query} ${interval}`);
    }
  }
  const asked = new URLSearchParams("period=12mo&interval=hour");
  assert.equal(lib.intervalOf(asked, lib.windowOf(asked, TODAY)), "week");
});

test("filters survive an address", () => {
  const clauses = (query) => lib.clausesOf(new URLSearchParams(query)).map(({ clause }) => clause);
  for (const filter of [
    { field: "source", operator: "is", value: "news~letter %7E 100%" },
    { field: "metadata.a~b", operator: "contains", value: "" },
    { field: "metadata.n", operator: "is", value: 5 },
    { field: "metadata.n", operator: "is", value: "json:5" },
    { field: "metadata.flag", operator: "is_not", value: false },
    { field: "path", operator: "is_set" },
    { any: [[{ field: "os", operator: "is", value: "Linux" }], [{ field: "path", operator: "is_set" }]] },
  ]) {
    const query = new URLSearchParams([["f", lib.writeClause(filter)]]);
    assert.deepEqual(clauses(query.toString()), [filter]);
  }
  assert.deepEqual(clauses("f=a&f=a~b~c&f=a~is~json:{&f=json:{&f=json:null&f=json:5&f=json:{}"), []);
  assert.deepEqual([lib.valueFilter("os", "Linux"), lib.valueFilter("path", null)], ["os~is~Linux", "path~is_not_set~"]);
});

test("files hold text as text", () => {
  const rows = [["a", "b"], ["=1+1", -5], ["+x", "@y"], ["-z", 'say "hi", please'], ["\ttab", null], ["line\nbreak", true]];
  const expected = ["a,b", "'=1+1,-5", "'+x,'@y", "'-z,\"say \"\"hi\"\", please\"", "'\ttab,", '"line\nbreak",true', ""];
  assert.equal(lib.csv(rows), `\ufeff${expected.join("\r\n")}`);
  // Also where the reader separates by `;` or tabs, and knows no quotes in the middle of a line.
  const texts = ["x;=1+1;y", "x\t-1", 'x; "=1"', "a\n@b", "x;y", "a=1;b-2"];
  const safe = ["x;'=1+1;y", "x\t'-1", '"x;\' ""=1"""', "\"a\n'@b\"", "x;y", "a=1;b-2", ""];
  assert.equal(lib.csv(texts.map((text) => [text])), `\ufeff${safe.join("\r\n")}`);
});

test("numbers are short where they are long, and say how they changed", () => {
  assert.deepEqual([0, 9_999, 12_345, 1_234_567].map(lib.brief), ["0", "9,999", "12.3K", "1.23M"]);
  assert.deepEqual([0, 59.4, 61, 3_600].map(lib.duration), ["0s", "59s", "1m 01s", "1h 00m"]);
  assert.deepEqual([lib.growth(5, 0), lib.growth(0, 0), lib.growth(3, 2), lib.growth(-1, -2)], [null, 0, 0.5, 0.5]);
  assert.equal(lib.money(12.5, "EUR"), "€12.50");
  assert.equal(lib.money(1, "XXXX"), "1 XXXX");
});

test("nouns follow their numbers, and messages are sentences", () => {
  assert.deepEqual([lib.counted(1, "event"), lib.counted(1_200, "event"), lib.counted(1, "person", "people"), lib.counted(0, "person", "people")], ["1 event", "1,200 events", "1 person", "0 people"]);
  assert.deepEqual(["the code has expired", "Try again."].map((text) => lib.sentence(text)), ["The code has expired.", "Try again."]);
  assert.equal(lib.sentence("start_date must be a day", true), "start_date must be a day.");
});

test("axes have round values that hold all points", () => {
  for (const [least, most] of [[0, 0], [0, 1], [0, 7], [0, 321], [-120, 2_310], [0, 0.247], [-5, 0]]) {
    const lines = lib.ticks(least, most);
    assert.ok(lines[0] <= least && lines.at(-1) >= most && lines.includes(0) && lines.length >= 2 && lines.length <= 8, `${least} ${most}: ${lines}`);
  }
  assert.deepEqual(lib.ticks(0, 2, 1), [0, 1, 2]);
  assert.deepEqual(lib.labelled(5, 3), [0, 2, 4]);
});

test("conditions on people come back from an address as they were, and others are nothing", () => {
  const asked = [
    { part: "did", atLeast: 1, within: "window", kind: "goal", value: "goal_1" },
    { part: "did_not", atLeast: 1_000, within: { days: 365 }, kind: "page", value: "/a~b%7E/**" },
    { part: "did", atLeast: 2, within: "ever", kind: "event_name", value: "sign up" },
  ];
  const query = new URLSearchParams(asked.map((one) => ["p", lib.writeAsked(one)]));
  const conditions = (query) => lib.conditionsOf(query).map(({ condition }) => condition);
  assert.deepEqual(conditions(new URLSearchParams(String(query))), asked.map(lib.conditionOf));
  for (const text of ["", "did", "does~1~ever~goal~g", "did~0~ever~goal~g", "did~1001~ever~goal~g", "did~1~always~goal~g", "did~1~366~goal~g", "did~1~ever~filter~g", "did~1~ever~goal~"]) {
    assert.deepEqual(conditions(new URLSearchParams([["p", text]])), [], text);
  }
  const goals = new Map([["goal_1", "Signed up"]]);
  const texts = asked.map((one) => lib.conditionText(lib.conditionOf(one), goals));
  assert.deepEqual(texts, ["reached Signed up in this period", "visited /a~b%7E/** fewer than 1000 times in the last 365 days", "did sign up at least 2 times at any time"]);
  const others = { did_not: { event_name: "order", filters: [{ field: "source", operator: "is", value: ["a", "b"] }] }, within: "ever" };
  assert.equal(lib.conditionText(others, goals), "did not do order and Source is a or b at any time");
  assert.deepEqual(conditions(new URLSearchParams([["p", lib.writeJson(others)], ["p", "json:{"]])), [others]);
});

test("adding what is there removes it", () => {
  assert.deepEqual(lib.toggled(["a"], "b"), ["a", "b"]);
  assert.deepEqual(lib.toggled(["a", "b"], "a"), ["b"]);
});

test("funnels come back from an address as they were", () => {
  const kept = {
    funnel_id: "funnel_1",
    steps: [{ page: "/a~b/**", name: "First" }, { goal: "goal_1" }, { event_name: "order", filters: [{ field: "path", operator: "is_set" }] }],
    within: { hours: 2_160 },
    order: "strict",
    level: null,
    breakdown: "source",
    filters: [{ any: [[{ field: "os", operator: "is_set" }]] }],
    people: [{ did: { event_name: "used" }, within: { days: 9 } }],
    segment: null,
  };
  const params = Object.entries(lib.paramsOf(kept)).flatMap(([name, value]) => [value ?? []].flat().map((text) => [name, text]));
  const query = new URLSearchParams(String(new URLSearchParams(params)));
  assert.deepEqual(lib.funnelOf(query), { steps: kept.steps, within: kept.within, order: "strict", level: "identity", breakdown: "source" });
  assert.deepEqual(lib.choiceOf(query), { filters: kept.filters, people: kept.people });
  // What can't be asked is as if nothing was said.
  for (const within of ["", "0days", "91days", "2161hours", "5weeks"]) assert.deepEqual(lib.funnelOf(new URLSearchParams({ within })).within, { days: 7 }, within);
  assert.deepEqual(lib.stepsOf(new URLSearchParams("s=&s=page&s=page~&s=other~x&s=json:{")), []);
});

test("a flow has a box for each node, and bands that fill them", () => {
  const node = (value, sessions, other = 0) => ({ value, sessions, users: sessions, exits: 0, other });
  const link = (from, to, sessions) => ({ step: 2, from, to, sessions, users: sessions });
  const answer = { sessions: 10, steps: [{ nodes: [node("/", 7), node(null, 3, 2)] }, { nodes: [node("/a", 6), node("/", 2)] }], links: [link("/", "/a", 5), link(null, "/", 2), link(null, "/a", 1)] };
  for (const isBackwards of [false, true]) {
    const { boxes, bands, height } = lib.flowOf(answer, isBackwards, 100, 200);
    assert.deepEqual(boxes.map(({ x }) => x), isBackwards ? [100, 100, 0, 0] : [0, 0, 100, 100]);
    assert.deepEqual(boxes.map(({ height }) => height), [140, 60, 120, 40]);
    assert.ok(boxes.every(({ y, height: own }) => y + own <= height));
    const into = bands.filter(({ to }) => to === boxes[2]);
    assert.deepEqual(into.map(({ toY, height }) => [toY, height]), [[0, 100], [100, 20]]);
    assert.deepEqual(bands.filter(({ from }) => from === boxes[1]).map(({ fromY, height, to }) => [fromY - boxes[1].y, height, to.node.value]), [[20, 40, "/"], [0, 20, "/a"]]);
  }
});

test("journeys in an address are those that can be asked", () => {
  const of = (query) => lib.journeyOf(new URLSearchParams(query));
  assert.deepEqual(of(""), { by: "path", depth: 5, rows: 10 });
  assert.deepEqual(of("by=other&depth=11&rows=7"), { by: "path", depth: 5, rows: 10 });
  assert.deepEqual(of("by=path_or_event&begin=/a&end=/b&depth=3&g=Blog~/blog/**&g=x"), { by: "path_or_event", from: "/a", depth: 3, rows: 10, groups: [{ name: "Blog", pattern: "/blog/**" }] });
  assert.deepEqual(of("by=event_name&end=a&g=Blog~/blog/**"), { by: "event_name", to: "a", depth: 5, rows: 10 });
});
