"""The queries of `latency.py`: each as an HTTP request, and as SQL that computes the same answer from the same events.

`load` creates the tables, which is not timed. It resolves what headcount resolves at ingestion, so that the SQL does not pay for it:
the identity of each event (with links resolved), its company, account, source and day, and its amount in micro-units of US dollars.
The SQL of each query computes sessions, touches, cohorts and sums, as in any database of events.
"""
import datetime
from dataclasses import dataclass
from decimal import Decimal

DAY_MS = 86_400_000
# Value of a euro in dollars. Pounds have no rate, and stay unconverted.
RATES = {"EUR": "1.083457"}
PAGEVIEWS = "('pageview', 'page_view', '$pageview', 'page')"

LOAD = f"""
create table brands (host varchar, brand varchar);
insert into brands values ('google.com', 'google'), ('t.co', 'twitter'), ('reddit.com', 'reddit'), ('duckduckgo.com', 'duckduckgo'),
  ('github.com', 'github');
create table links as
  select project, anonymous_id, arg_min(user_id, position) user_id from sent where user_id is not null group by all;
create table identified as
  select sent.*, coalesce(sent.user_id, links.user_id, 'p' || project || '/' || anonymous_id) identity,
    coalesce(sent.user_id, links.user_id) is not null identified,
    case when group_type = 'company' then group_key end reported_company,
    nullif(regexp_extract(lower(referrer), '^https?://(?:www[.])?([^/:]+)', 1), regexp_replace(lower(hostname), '^www[.]', '')) host
  from sent left join links using (project, anonymous_id);
create table firsts as
  select project, identity, arg_min(reported_company, position) company from identified where reported_company is not null group by all;
create table events as
  select position, project, at_ms, (at_ms // {DAY_MS})::integer "day", identity, identified, name, page,
    host referrer, coalesce(lower(trim(utm_source)), brand, host, '(direct)') source,
    coalesce(reported_company, firsts.company) company,
    case when coalesce(reported_company, firsts.company) is null then 'identity ' || identity
         else 'company ' || coalesce(reported_company, firsts.company) end account,
    reported_company, case when group_type <> 'company' then group_type end group_type, group_key,
    case when name = 'group' then group_name end group_name,
    minor * 10000 micros, currency,
    case currency when 'USD' then minor * 10000
                  when 'EUR' then sign(minor) * ((2 * abs(minor) * 1083457 + 100) // 200) end usd
  from identified left join firsts using (project, identity) left join brands using (host)
  order by position;
drop table identified;
drop table firsts;
drop table links;
"""

# Entries of sessions among the events selected by `of`: the first event of an identity in a project, and each event more than
# 30 minutes after the previous one.
ENTRIES = """select * from (select *, lag(at_ms) over (partition by project, identity order by at_ms, position) previous_ms
  from events where {of}) where previous_ms is null or at_ms - previous_ms > 1800000"""


@dataclass(frozen=True)
class Id:
    """An identifier assigned by headcount: equal values of `of` must have the same text in every answer, different ones different texts."""
    of: tuple


@dataclass(frozen=True)
class Query:
    """A query. `path` may contain `{company}`, the id of `company`. `shape` turns the rows of `statements` into the expected
    answer."""
    name: str
    path: str
    parameters: dict
    body: dict
    company: str
    statements: tuple
    shape: object


def money(micros):
    return Decimal(int(micros or 0)) / 1_000_000


def ratio(micros, count):
    """Returns the quotient, rounded to 6 places, half away from zero; 0 if the divisor is 0."""
    micros, count = int(micros or 0), int(count)
    if count == 0:
        return Decimal(0)
    return money((2 * abs(micros) + count) // (2 * count) * (1 if micros >= 0 else -1))


def instant(at_ms):
    at = datetime.datetime.fromtimestamp(0, datetime.timezone.utc) + datetime.timedelta(milliseconds=int(at_ms))
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def date(day):
    return (datetime.date(1970, 1, 1) + datetime.timedelta(days=int(day))).isoformat()


def text(value):
    return "'" + value.replace("'", "''") + "'"


def domain(key):
    return key if "." in key else None


def unconverted(rows):
    return {currency: {"revenue": money(micros), "orders": orders} for currency, micros, orders in rows}


class Queries:
    """All queries about one project and its organization, for a window of whole days."""

    def __init__(self, connection, project, first, last, today):
        self.connection, self.project, self.project_id = connection, project["number"], project["id"]
        self.first, self.last = first, last
        number = lambda day: (day - datetime.date(1970, 1, 1)).days
        self.days = f'"day" between {number(first)} and {number(last)}'
        self.mine = f"project = {self.project}"
        self.window = {"start_date": first.isoformat(), "end_date": last.isoformat()}
        # Queries that count back from today get a window with the same first day.
        self.range = {"range_days": str((today - first).days + 1)}
        self.recent = f'"day" between {number(first)} and {number(today)}'

    def one(self, sql):
        return self.connection.execute(sql).fetchone()[0]

    def all(self, sql):
        return [value for value, in self.connection.execute(sql).fetchall()]

    def median(self, counts, named):
        """Returns `named` of the row with the median number of `events`."""
        return self.one(f"""select {named} from (select *, row_number() over (order by events, {named}) place, count(*) over () total
            from ({counts})) where place = (total + 1) // 2""")

    def typical(self):
        """Yields each operation for a typical entity, and for the one with the most events."""
        users = f"select identity, count(*) events from events where identified and {self.mine} and {self.days} group by 1"
        companies = f"select company, count(*) events from events where contains(company, '.') and {self.recent} group by 1"
        most = lambda counts, named: self.one(f"select {named} from ({counts}) order by events desc, {named} limit 1")
        teams = f"select group_key, count(*) events from events where group_type = 'team' and {self.recent} group by 1"
        yield from self.of_project()
        for kind, user in (("typical", self.median(users, "identity")), ("busiest", most(users, "identity"))):
            yield from self.of_user(f"{kind} user", user)
        yield self.companies_top()
        for kind, key in (("typical", self.median(companies, "company")), ("busiest", most(companies, "company"))):
            yield from self.of_company(kind, key)
        yield self.groups_top()
        yield self.group(most(teams, "group_key"))

    def thorough(self):
        """Yields each operation for many entities, and with several limits."""
        yield from self.of_project()
        for model in ("first_touch", "last_touch"):
            yield self.by_attribution(model, "account", limit=3)
        # Users of two projects first.
        for user in self.all(f"""select identity from events where identified group by 1 having bool_or({self.mine})
                order by count(distinct project) desc, hash(identity) limit 30"""):
            yield from self.of_user(user, user)
        for limit in (1, 20, 100):
            yield self.companies_top(limit)
            yield self.groups_top(limit)
        for key in self.all(f"select company from events where contains(company, '.') and {self.mine} group by 1 order by hash(company) limit 10"):
            yield from self.of_company(key, key)
            yield self.top_users(key, key, limit=100)
        for key in self.all(f"select group_key from events where group_type = 'team' and {self.mine} group by 1 order by hash(group_key) limit 10"):
            yield self.group(key)

    def of_project(self):
        yield self.unique_users()
        yield self.metrics()
        yield self.timeseries()
        for model in ("first_touch", "last_touch"):
            for level in ("identity", "account"):
                yield self.by_attribution(model, level)
        for level in ("identity", "account"):
            yield self.cohorts(level)

    def of_user(self, kind, user):
        yield self.profile(kind, user)
        yield self.top_pages(kind, user)
        yield self.referrers(kind, user)

    def of_company(self, kind, key):
        yield self.company(f"companies/lookup, {kind}", "/companies/lookup", key, {"domain": key})
        yield self.company(f"companies/metrics, {kind}", "/companies/{company}/metrics", key, {})
        yield self.top_users(kind, key)

    def build(self, name, path, statements, shape, query=None, body=None, company=None):
        return Query(name, path.replace("{project}", self.project_id), query or {}, body, company, tuple(statements), shape)

    def unconverted_sql(self, of):
        return f"""select currency, sum(micros), count(*) filter (micros > 0) from events
            where {self.mine} and {of} and usd is null and micros <> 0 group by 1 order by 1"""

    def every_day(self):
        return ((self.first + datetime.timedelta(days=day)).isoformat() for day in range((self.last - self.first).days + 1))

    def unique_users(self):
        sql = f"""select "day", count(distinct identity) from events where {self.mine} and {self.days} group by grouping sets (("day"), ())"""

        def shape(rows):
            users = {day if day is None else date(day): count for day, count in rows}
            series = [{"day": day, "unique_users": users.get(day, 0)} for day in self.every_day()]
            return {"series": series, "total_unique_users": users[None], "timezone": "UTC", **self.window}
        return self.build("count-unique-users-per-day, 30 days and their union", "/projects/{project}/analytics/count-unique-users-per-day",
                             [sql], shape, body=self.window)

    def metrics(self):
        sql = f"""select sum(usd), count(*) filter (usd > 0), count(distinct identity), count(distinct account) from events
            where {self.mine} and {self.days}"""

        def shape(figures, foreign):
            revenue, orders, users, accounts = figures[0]
            return {"total_revenue": money(revenue), "orders": orders, "aov": ratio(revenue, orders), "arpa": ratio(revenue, accounts),
                    "arpu": ratio(revenue, users), "currency": "USD", "unconverted": unconverted(foreign)}
        return self.build("revenue/metrics", "/projects/{project}/revenue/metrics", [sql, self.unconverted_sql(self.days)], shape, self.window)

    def timeseries(self):
        sql = f"""select "day", sum(usd), count(*) filter (usd > 0) from events where {self.mine} and {self.days} and usd is not null group by 1"""

        def shape(rows, foreign):
            tills = {date(day): (revenue, orders) for day, revenue, orders in rows}
            row = lambda day, till: {"day": day, "revenue": money(till[0]), "orders": till[1]}
            series = [row(day, tills.get(day, (0, 0))) for day in self.every_day()]
            return {"currency": "USD", "series": series, "unconverted": unconverted(foreign)}
        return self.build("revenue/timeseries", "/projects/{project}/revenue/timeseries", [sql, self.unconverted_sql(self.days)], shape,
                             self.window)

    def by_attribution(self, model, level, limit=20):
        """A touch is the entry of a session, if that entry has a source. An order is attributed to its entity's first touch, even if
        that is later than the order, or to the last touch at or before the order. Of touches in the same millisecond, the one
        recorded later counts as later."""
        orders = f"select {level} entity, at_ms, usd from events where {self.mine} and {self.days} and usd <> 0"
        touches = f"select {level} entity, at_ms, position, source from ({ENTRIES.format(of=self.mine)}) where source <> '(direct)'"
        if model == "first_touch":
            touched = """select usd, source from orders left join
                (select entity, arg_min(source, (at_ms, position)) source from touches group by 1) using (entity)"""
        else:
            touched = """select usd, source from orders asof left join
                (select entity, at_ms, arg_max(source, position) source from touches group by 1, 2) touches
                on orders.entity = touches.entity and orders.at_ms >= touches.at_ms"""
        sql = f"""with orders as ({orders}), touches as ({touches}), touched as ({touched})
            select coalesce(source, '(direct)') source, sum(usd) revenue, count(*) filter (usd > 0) orders from touched group by 1
            order by revenue desc, source limit {limit + 1}"""

        def shape(rows, foreign):
            listed = [{"dimension": source, "revenue": money(revenue), "orders": orders} for source, revenue, orders in rows[:limit]]
            return {"currency": "USD", "rows": listed, "truncated": len(rows) > limit, "unconverted": unconverted(foreign)}
        query = {"model": model, "level": level, "dimension": "source", "limit": str(limit), **self.window}
        return self.build(f"revenue/by-attribution, {model} by {level}", "/projects/{project}/revenue/by-attribution",
                             [sql, self.unconverted_sql(self.days)], shape, query)

    def cohorts(self, level):
        sql = f"""with entities as (select {level}, min(at_ms) first_ms, sum(usd) revenue, count(*) filter (usd > 0) orders
                from events where {self.mine} group by 1)
            select strftime(make_timestamp(first_ms * 1000), '%Y-%m') cohort, count(*), sum(revenue), sum(orders) from entities
            group by 1 order by 1 desc limit 25"""

        def shape(rows, foreign):
            row = lambda cohort, entities, revenue, orders: {
                "cohort": cohort, "entities": entities, "revenue": money(revenue), "orders": orders, "ltv": ratio(revenue, entities)}
            return {"currency": "USD", "cohorts": [row(*row_) for row_ in rows[:24]], "truncated": len(rows) > 24,
                    "unconverted": unconverted(foreign)}
        return self.build(f"revenue/ltv-cohorts by {level}", "/projects/{project}/revenue/ltv-cohorts",
                             [sql, self.unconverted_sql("true")], shape, {"level": level})

    def profile(self, kind, user):
        """Computes sessions over the whole history, since a session that continues into the window did not start in it."""
        sql = f"""with mine as (select * from events where identity = {text(user)}),
              gaps as (select *, lag(at_ms) over (partition by project order by at_ms, position) previous_ms from mine),
              numbered as (select *, count(*) filter (previous_ms is null or at_ms - previous_ms > 1800000)
                over (partition by project order by at_ms, position) session from gaps),
              sessions as (select count(*) events, max(at_ms) - min(at_ms) duration_ms, min("day") "day" from numbered group by project, session),
              begun as (select count(*) sessions, sum(duration_ms) total_ms, list_sort(list(duration_ms)) durations,
                count(*) filter (events = 1) bounces from sessions where {self.days}),
              active as (select count(*) events, count(*) filter (name in {PAGEVIEWS}) pageviews, count(distinct "day") active_days, sum(usd) revenue
                from mine where {self.days})
            select events, pageviews, sessions, total_ms, durations[(sessions * 9 + 9) // 10], bounces, active_days,
              (select min(at_ms) from mine), (select max(at_ms) from mine), revenue from begun, active"""

        def shape(rows):
            events, pageviews, sessions, total_ms, p90_ms, bounces, days, first_ms, last_ms, revenue = rows[0]
            return {"identity_id": Id(("identity", user)), "events": events, "pageviews": pageviews, "sessions": sessions,
                    "duration_avg_sec": ratio((total_ms or 0) * 1000, sessions), "duration_p90_sec": money((p90_ms or 0) * 1000),
                    "bounce_rate": ratio(bounces * 1_000_000, sessions), "active_days": days, "first_seen": instant(first_ms),
                    "last_seen": instant(last_ms), "revenue": money(revenue)}
        return self.build(f"identities/profile, {kind}", "/identities/profile", [sql], shape, {"user_id": user, **self.window})

    def counts(self, kind, user, what, listed, named, column, of):
        sql = f"""select {column}, count(*) events from events where identity = {text(user)} and {self.days} and {of} group by 1
            order by events desc, 1 limit 11"""

        def shape(rows):
            return {"identity_id": Id(("identity", user)), listed: [{named: value, "count": count} for value, count in rows[:10]],
                    "truncated": len(rows) > 10}
        return self.build(f"identities/{what}, {kind}", f"/identities/{what}", [sql], shape, {"user_id": user, **self.window})

    def top_pages(self, kind, user):
        return self.counts(kind, user, "top-pages", "pages", "url", "page", f"name in {PAGEVIEWS}")

    def referrers(self, kind, user):
        return self.counts(kind, user, "referrers", "referrers", "referrer", "referrer", "referrer is not null")

    def names(self, key, of):
        """Returns SQL for the most recently reported name of each group or company; `key` identifies it."""
        return f"select {key} key, arg_max(group_name, (at_ms, position)) name from events where group_name is not null and {of} group by 1"

    def companies_top(self, limit=20):
        sql = f"""with active as (select company, count(*) events, count(distinct identity) users, sum(usd) revenue from events
                where company is not null and {self.recent} group by 1),
              names as ({self.names("reported_company", "reported_company is not null")}),
              top as (select * from active left join names on key = company order by events desc, coalesce(name, company), company limit {limit + 1})
            select company, name, top.events, users, revenue, (select max(at_ms) from events where events.company = top.company)
            from top order by top.events desc, coalesce(name, company), company"""

        def shape(rows):
            row = lambda key, name, events, users, revenue, last_ms: {
                "company_id": Id(("company", key)), "name": name, "domain": domain(key), "events": events, "users": users,
                "revenue": money(revenue), "last_seen": instant(last_ms)}
            return {"companies": [row(*row_) for row_ in rows[:limit]], "truncated": len(rows) > limit}
        return self.build("companies/top", "/companies/top", [sql], shape, {"limit": str(limit), **self.range})

    def company(self, name, path, key, query):
        """Counts the sessions whose entry belongs to the company; their users may also have been active elsewhere."""
        own = f"company = {text(key)}"
        entries = ENTRIES.format(of=f"identity in (select identity from events where {own})")
        sql = f"""select (select count(*) from ({entries}) where {own} and {self.recent}),
              (select arg_max(group_name, (at_ms, position)) from events where group_name is not null and reported_company = {text(key)}),
              count(*) filter ({self.recent}), count(distinct identity) filter ({self.recent}), sum(usd) filter ({self.recent}),
              count(*) filter (usd > 0 and {self.recent}), min(at_ms), max(at_ms) from events where {own}"""

        def shape(rows):
            sessions, name, events, users, revenue, orders, first_ms, last_ms = rows[0]
            return {"company_id": Id(("company", key)), "name": name, "domain": domain(key), "events": events, "users": users,
                    "sessions": sessions, "revenue": money(revenue), "orders": orders, "currency": "USD",
                    "first_seen": instant(first_ms), "last_seen": instant(last_ms)}
        return self.build(name, path, [sql], shape, query | self.range, company=key)

    def top_users(self, kind, key, limit=20):
        sql = f"""select identity, count(*) filter ({self.recent}) events, max(at_ms) from events
            where company = {text(key)} and identified group by 1 having events > 0 order by events desc, identity limit {limit + 1}"""

        def shape(rows):
            row = lambda user, events, last_ms: {"resolved_identifier": user, "identity_id": Id(("identity", user)), "events": events,
                                                 "last_seen": instant(last_ms)}
            return {"users": [row(*row_) for row_ in rows[:limit]], "truncated": len(rows) > limit}
        return self.build(f"companies/top-users, {kind}", "/companies/{company}/top-users", [sql], shape, {"limit": str(limit), **self.range}, company=key)

    def groups_top(self, limit=20):
        sql = f"""with groups as (select group_key, count(*) filter ({self.recent}) events, count(distinct identity) filter ({self.recent}) users,
                max(at_ms) last_ms from events where group_type = 'team' group by 1),
              names as ({self.names("group_key", "group_type = 'team'")})
            select group_key, name, events, users, last_ms from groups left join names on key = group_key where events > 0
            order by events desc, coalesce(name, group_key), group_key limit {limit + 1}"""

        def shape(rows):
            return {"groups": [self.group_row(*row) for row in rows[:limit]], "truncated": len(rows) > limit}
        return self.build("groups/top", "/groups/top", [sql], shape, {"group_type": "team", "limit": str(limit), **self.range})

    @staticmethod
    def group_row(key, name, events, users, last_ms):
        return {"group_type": "team", "group_key": key, "name": name, "events": events, "users": users, "last_seen": instant(last_ms)}

    def group(self, key):
        sql = f"""select {text(key)}, arg_max(group_name, (at_ms, position)) filter (group_name is not null), count(*) filter ({self.recent}),
              count(distinct identity) filter ({self.recent}), max(at_ms) from events where group_type = 'team' and group_key = {text(key)}"""
        return self.build("groups/metrics", "/groups/metrics", [sql], lambda rows: self.group_row(*rows[0]),
                             {"group_type": "team", "group_key": key, **self.range})


def load(connection, parquet):
    connection.execute(f"create view sent as select * from read_parquet({text(str(parquet))})")
    for statement in LOAD.split(";"):
        if statement.strip():
            connection.execute(statement)
