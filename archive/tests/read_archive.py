"""Reads a project's folder of the archive, which is the current directory, with DuckDB and with pyarrow; prints JSON."""

import json
import sys

import duckdb
import pyarrow
import pyarrow.parquet as parquet

# As the documentation has it.
FILES = "SET VARIABLE f = (SELECT list(u.name) FROM (SELECT unnest(files) u FROM 'manifest.json'))"
TIMESERIES = """
SELECT day, sum(value_in_project), count(*) FILTER (value > 0) FROM read_parquet(getvariable('f'), union_by_name = true)
WHERE value_counted AND NOT set_aside AND value_in_project IS NOT NULL GROUP BY day
"""
READ = "FROM read_parquet(getvariable('f'), union_by_name = true)"


def main():
    db = duckdb.connect()
    db.execute(FILES)
    answer = {
        "timeseries": sorted([str(day), f"{total:.6f}", orders] for day, total, orders in db.execute(TIMESERIES).fetchall()),
        "rows": db.execute(f"SELECT count(*) {READ}").fetchone()[0],
    }
    names = [row[0] for row in db.execute(f"DESCRIBE SELECT * {READ}").fetchall()]
    if "metadata.cart.id" in names:
        plans = f'SELECT "metadata.plan", count(*) {READ} WHERE "metadata.plan" IS NOT NULL GROUP BY 1 ORDER BY 1'
        answer["plans"] = db.execute(plans).fetchall()
        whole = f"SELECT metadata->'plan' p, count(*) {READ} WHERE metadata IS NOT NULL GROUP BY 1 ORDER BY 1"
        answer["plans_of_metadata"] = db.execute(whole).fetchall()
    files = db.execute("SELECT getvariable('f')").fetchone()[0]
    # Each page has a checksum, and pyarrow compares it.
    tables = [parquet.read_table(file, page_checksum_verification=True, partitioning=None) for file in files]
    answer["pyarrow"] = [
        {column.name: [str(column.type), *map(show, tables[0][column.name].to_pylist())] for column in tables[0].schema}
    ]
    answer["checksums"] = finds_damage(files[0])
    json.dump(answer, sys.stdout)


def finds_damage(file):
    """Whether a flipped byte of a page is found by the page's checksum."""
    with open(file, "rb") as opened:
        sound = opened.read()
    for at in range(4, 120):
        damaged = sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1:]
        try:
            parquet.read_table(pyarrow.BufferReader(damaged), page_checksum_verification=True)
        except (OSError, pyarrow.ArrowException) as error:
            if "CRC checksum" in str(error):
                return True
    return False


def show(value):
    if isinstance(value, bytes):
        return value.hex()
    return value if value is None or isinstance(value, (bool, int)) else str(value)


main()
