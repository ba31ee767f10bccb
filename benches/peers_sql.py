"""The questions of `peers.py` in SQLite's SQL: the same answers from the same table as those of `latency_sql.py`."""
import re

from latency_sql import ENTRIES

COLUMNS = ("position", "project", "at_ms", "day", "identity", "identified", "name", "page", "referrer", "source", "company", "account",
           "micros", "currency", "usd")
# What makes each question quick that an index can help.
INDEXES = ("project, day", "identity, project, at_ms, position", "company, day")
STEP = 50_000


def load(ducks, lite):
    """Copies DuckDB's table of events to SQLite, and indexes it. Not timed, as the load of DuckDB isn't."""
    names = ", ".join(f'"{name}"' for name in COLUMNS)
    lite.execute(f"create table events ({names})")
    cursor = ducks.execute(f"select {names} from events order by position")
    insert = f"insert into events values ({', '.join('?' * len(COLUMNS))})"
    lite.execute("begin")
    while rows := cursor.fetchmany(STEP):
        lite.executemany(insert, rows)
    lite.execute("commit")
    for number, columns in enumerate(INDEXES):
        lite.execute(f"create index events_{number} on events ({columns})")
    lite.execute("analyze")


def translated(statement):
    """Writes conditions of sums as the standard has them: DuckDB allows to leave out a word."""
    return re.sub(r"filter \((?!where)", "filter (where ", statement)


def questions(queries):
    """Yields each question, and its statements for SQLite."""
    mine, days = queries.mine, queries.days
    unconverted = translated(queries.unconverted_sql(days))
    unique_users = f"""select "day", count(distinct identity) from events where {mine} and {days} group by 1
        union all select null, count(distinct identity) from events where {mine} and {days}"""
    yield queries.unique_users(), [unique_users]
    for query in (queries.metrics(), queries.timeseries()):
        yield query, [translated(statement) for statement in query.statements]
    # The earliest touch of an entity; of those in the same millisecond, the one that was recorded first.
    first_touch = f"""with touches as (select identity entity, at_ms, position, source from ({ENTRIES.format(of=mine)}) where source <> '(direct)'),
        firsts as (select entity, source from (select entity, source, row_number() over (partition by entity order by at_ms, position) place
          from touches) where place = 1),
        orders as (select identity entity, usd from events where {mine} and {days} and usd <> 0)
        select coalesce(source, '(direct)') source, sum(usd) revenue, count(*) filter (where usd > 0) orders
        from orders left join firsts using (entity) group by 1 order by revenue desc, 1 limit 21"""
    yield queries.by_attribution("first_touch", "identity"), [first_touch, unconverted]
    cohorts = f"""with entities as (select identity, min(at_ms) first_ms, sum(usd) revenue, count(*) filter (where usd > 0) orders
          from events where {mine} group by 1)
        select strftime('%Y-%m', first_ms / 1000, 'unixepoch') cohort, count(*), sum(revenue), sum(orders) from entities
        group by 1 order by 1 desc limit 25"""
    yield queries.cohorts("identity"), [cohorts, translated(queries.unconverted_sql("true"))]
    users = f"select identity, count(*) events from events where identified and {mine} and {days} group by 1"
    user = queries.median(users, "identity")
    for query in (queries.top_pages("typical user", user), queries.referrers("typical user", user)):
        yield query, [translated(statement) for statement in query.statements]
    companies = f"select company, count(*) events from events where contains(company, '.') and {queries.recent} group by 1"
    query = queries.top_users("typical", queries.median(companies, "company"))
    yield query, [translated(statement) for statement in query.statements]
