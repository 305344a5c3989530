"""Queries and files made to do harm, and a watch over what they take."""

import os
import random
import shutil
import subprocess
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from idc_core.sql import database

ENDLESS = "WITH RECURSIVE more AS (SELECT 1 AS x UNION ALL SELECT {next} FROM more) SELECT {seen} FROM more"

LONG = (
    "SELECT count(*) FROM range(10000000000) a, range(10000000000) b WHERE a.range + b.range = 3",
    "SELECT * FROM range(10000000000) a, range(10000000000) b ORDER BY random()",
    "SELECT a.range, count(*) FROM range(10000000000) a, range(10000000000) b GROUP BY ALL",
    "SELECT DISTINCT hash(range) FROM range(10000000000)",
    "SELECT *, row_number() OVER (ORDER BY random()) FROM range(10000000000)",
    "SELECT sleep_ms(1000000)",
    "SELECT max(sleep_ms(1000)::VARCHAR) FROM range(10000000)",
    ENDLESS.format(next="x + 1", seen="count(*)"),
    ENDLESS.format(next="(x + 1) % 7", seen="max(x)"),
    "WITH RECURSIVE more AS (SELECT 'x' AS x UNION ALL SELECT x || x FROM more) SELECT max(length(x)) FROM more",
    "SELECT levenshtein(repeat('x', 1000000), repeat('y', 1000000))",
    "SELECT regexp_matches(repeat('a', 30), '(a*)*b'), count(*) FROM range(1000000000000)",
    "SELECT list_sort(range(100000000)), list_sort(range(100000000))",
    "SELECT sum(list_sum(range(range))) FROM range(100000000)",
    "SELECT * FROM " + ", ".join(f"range(100) t{n}" for n in range(60)) + " ORDER BY ALL DESC",
    "SELECT factorial(20) % range FROM range(1, 100000000000) ORDER BY 1",
)
"""Queries that would run for ever or fill the memory."""

LARGE = (
    "SELECT repeat('x', 1000000000)",
    "SELECT repeat('x', 2000000000) || repeat('x', 2000000000)",
    "SELECT length(repeat('x', 4000000000))",
    "SELECT repeat('x', 15000000)",
    "SELECT repeat('x', 17000000)",
    "SELECT repeat('x', 10000) FROM range(10000)",
    "SELECT range(100000000)",
    "SELECT list_resize([NULL], 900000000)",
    "SELECT list_resize([true], 100000000)",
    "SELECT list_resize(['x'], 100000000)",
    "SELECT list(range) FROM range(1000000000)",
    "SELECT list(NULL) FROM range(10000000)",
    "SELECT string_agg('xxxxxxxxxxxxxxxx', '') FROM range(100000000)",
    "SELECT map(range(10000000), range(10000000))",
    "SELECT list_transform(range(10000000), x -> range(x))",
    "SELECT lpad('', 2000000000, 'x')",
    "SELECT bitstring('1', 2000000000)",
    "SELECT printf('%2000000000d', 1)",
    "SELECT format('{:>2000000000}', 'x')",
    "SELECT to_json(range(10000000))",
    "SELECT error(repeat('x', 100000000))",
    "SELECT * FROM (SELECT range(10000000) AS many) POSITIONAL JOIN range(10000)",
    "SELECT unnest(range(1000000000))",
    "SELECT " + ", ".join(f"{n} AS c{n}" for n in range(1500)) + " FROM range(10000)",
    "SELECT COLUMNS(*) + 1 FROM (SELECT " + ", ".join(f"{n} AS c{n}" for n in range(1500)) + ")",
    "SELECT UNNEST(s) FROM (SELECT {" + ", ".join(f"'c{n}': {n}" for n in range(1200)) + "} AS s)",
    "SELECT x FROM (SELECT range AS x FROM range(3000)) PIVOT (count(*) FOR x IN ("
    + ",".join(map(str, range(3000)))
    + "))",
    "SELECT histogram(range) FROM range(5000000)",
    "SELECT ['" + "x" * 9000 + "'] FROM range(9999)",
    "SELECT '" + "x" * 9000 + "'::ENUM('" + "x" * 9000 + "') FROM range(9999)",
)
"""Queries with large values, answers or messages."""

DEEP = (
    "SELECT " + "(" * 90 + "1" + ")" * 90,
    "SELECT " + "[" * 90 + "1" + "]" * 90,
    "SELECT " + "-" + " -" * 5000 + "1",
    "SELECT " + "NOT " * 4000 + "true",
    "SELECT " + "1+" * 9000 + "1",
    "SELECT " + "1 AND " * 3000 + "1",
    "SELECT 1 " + "UNION ALL SELECT 1 " * 1000,
    "SELECT " + "CASE WHEN true THEN " * 400 + "1" + " END" * 400,
    "SELECT " + "(SELECT " * 80 + "1" + ")" * 80,
    "SELECT * FROM " + "(SELECT * FROM " * 80 + "range(3)" + ")" * 80,
    "WITH "
    + ", ".join(f"t{n} AS (FROM {f't{n - 1} a, t{n - 1} b' if n else 'range(9)'})" for n in range(60))
    + " SELECT count(*) FROM t59",
    "SELECT '1'::" + "INTEGER" + "[]" * 4000,
    "SELECT " + "{'a': " * 90 + "1" + "}" * 90,
    "SELECT x" + ".a" * 6000 + " FROM range(3)",
    "SELECT 1 WHERE 1 IN (" + ",".join(["1"] * 5000) + ")",
    "SELECT '" + "''" * 9000 + "'",
    "SELECT '" + "(" * 15000 + "'",
    "SELECT /* " + "(" * 15000 + " */ 1",
    "'" * 19999,
    "/*" * 9999,
    "$" * 19999,
    "SELECT json('" + "[" * 9000 + "]" * 9000 + "')",
    "SELECT json_extract('" + '{"a":' * 3000 + "1" + "}" * 3000 + "', '$..a')",
    "SELECT regexp_matches('x', '" + "(" * 5000 + "x" + ")" * 5000 + "')",
    "SELECT regexp_matches('x', '" + "x{1000}" * 900 + "')",
)
"""Queries nested or repeated until something gives way."""

TYPES = (
    "SELECT * FROM test_all_types()",
    "SELECT * FROM test_vector_types(NULL::INTEGER[], NULL::VARCHAR, NULL::STRUCT(a DATE, b VARCHAR))",
    "SELECT 'infinity'::DATE, '-infinity'::DATE, '290000-01-01'::DATE, '1000-01-01 (BC)'::DATE",
    "SELECT 'infinity'::TIMESTAMP, '-infinity'::TIMESTAMPTZ, '290000-01-01'::TIMESTAMP, 'infinity'::TIMESTAMP_S",
    "SELECT INTERVAL 999999999 MONTH, INTERVAL '-1 microsecond', to_days(2147483647)",
    "SELECT TIME '24:00:00', '24:00:00-15:59:59'::TIMETZ, TIMESTAMP_NS '2200-01-01 00:00:00.123456789'",
    "SELECT 'NaN'::DOUBLE, 'inf'::FLOAT, -0.0::DOUBLE, 1e308 * 10",
    "SELECT 170141183460469231731687303715884105727, 340282366920938463463374607431768211455::UHUGEINT",
    "SELECT repeat('9', 300)::BIGNUM, 99999999999999999999999999999999999999::DECIMAL(38, 0)",
    "SELECT ['infinity'::DATE], {'a': 'infinity'::TIMESTAMP}, MAP {'infinity'::DATE: 1}, [[NULL]], [], {}",
    "SELECT '\\xFF\\x00'::BLOB, '0101'::BIT, uuid(), 'x'::ENUM('x', 'y'), union_value(a := 'infinity'::DATE)",
    "SELECT chr(0), chr(1114111), 'a\u202eb', '\u0000'",
    "SELECT NULL, [NULL], {'a': NULL}, (1, 2), row(1, row(2, 'infinity'::DATE))",
    'SELECT 1 AS a, 2 AS a, 3 AS a_1, 4 AS " ", 5 AS "x""y", 6 AS "<img src=x>", 7 AS "![x](http://x)"',
    "SELECT '{\"a\": [1, null]}'::JSON, '1'::VARIANT, 'POINT(1 2)'::GEOMETRY",
    "SELECT DATE '0001-01-01', DATE '9999-12-31', TIMESTAMP '9999-12-31 23:59:59.999999', TIMESTAMPTZ '0001-01-01'",
    "SELECT current_setting('TimeZone'), now(), today(), current_time, version()",
    "SELECT avg(range), sum(range), list(range), mode(range), histogram(range % 3) FROM range(9)",
)
"""Values of every type, and the ends of their ranges."""

REACHING = (
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_csv_auto('{folder}/secret.csv')",
    "SELECT * FROM '{folder}/secret.csv'",
    "SELECT * FROM read_text('{folder}/*')",
    "SELECT * FROM read_blob('{folder}/inspection.duckdb')",
    "SELECT * FROM read_duckdb('{folder}/other.duckdb')",
    "SELECT * FROM '{folder}/other.duckdb'",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM glob('**')",
    "SELECT * FROM parquet_metadata('{folder}/secret.parquet')",
    "SELECT * FROM sniff_csv('{folder}/secret.csv')",
    "SELECT * FROM query('SELECT * FROM read_text(''{folder}/secret.csv'')')",
    "SELECT * FROM query_table('{folder}/secret.csv')",
    "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('FROM read_text(''{folder}/secret.csv'')'))",
    "SELECT getenv('HOME')",
    "SELECT getvariable('x')",
    "SELECT * FROM enable_logging(storage = 'file', storage_config = {{'path': '{folder}/log'}})",
    "SELECT * FROM enable_profiling(save_location = '{folder}/profile')",
    "SELECT write_log('x'), * FROM duckdb_logs()",
    "SELECT * FROM force_checkpoint()",
    "SELECT * FROM checkpoint()",
    "SELECT setseed(0.5), nextval('x')",
    "SELECT * FROM register_external_resource('a', 'b', MAP {{'a': '{folder}'}})",
    "SELECT * FROM create_external_resource('a', 'b')",
    "SELECT * FROM pandas_scan(140000000000000)",
    "SELECT * FROM arrow_scan(1, 2, 3)",
    "SELECT * FROM python_map_function()",
    "SELECT * FROM seq_scan()",
    "SELECT * FROM given",
    "SELECT * FROM connection",
    "SELECT * FROM sys.modules",
    "SELECT * INTO mine FROM scores",
    "COPY scores TO '{folder}/out.csv'",
    "COPY scores FROM '/etc/passwd'",
    "COPY FROM DATABASE inspection TO other",
    "EXPORT DATABASE '{folder}/all'",
    "IMPORT DATABASE '{folder}'",
    "ATTACH '{folder}/new.duckdb'",
    "ATTACH ':memory:' AS mine",
    "DETACH inspection",
    "USE memory",
    "INSTALL httpfs",
    "INSTALL '{folder}/evil.duckdb_extension'",
    "LOAD '{folder}/evil.duckdb_extension'",
    "UPDATE EXTENSIONS",
    "PRAGMA enable_profiling",
    "PRAGMA import_database('{folder}')",
    "PRAGMA database_list",
    "SET memory_limit = '100GB'",
    "SET GLOBAL temp_directory = '{folder}/spill'",
    "RESET memory_limit",
    "SET lock_configuration = false",
    "CREATE SECRET (TYPE s3)",
    "CREATE OR REPLACE TEMP VIEW mine AS SELECT 1",
    "CREATE FUNCTION mine(x) AS x",
    "INSERT INTO kept.runs (run) VALUES ('x') RETURNING *",
    "WITH gone AS (DELETE FROM kept.runs RETURNING *) SELECT * FROM gone",
    "MERGE INTO kept.runs USING (SELECT 1) ON false WHEN NOT MATCHED THEN INSERT DEFAULT VALUES",
    "TRUNCATE kept.runs",
    "BEGIN; DELETE FROM kept.runs; COMMIT",
    "SELECT 1; SELECT 2",
    "SELECT 1; COPY scores TO '{folder}/out.csv'",
    "SELECT 1;" * 2000,
    "EXPLAIN ANALYZE SELECT 1",
    "EXECUTE mine",
    "PREPARE mine AS SELECT 1; EXECUTE mine",
    "CALL enable_logging()",
    "KILL 1",
    "SHOW TABLES",
    "DESCRIBE scores",
    "SUMMARIZE scores",
    "VALUES (1), (2)",
    "FROM scores",
    "TABLE scores",
    "PIVOT scores ON measure USING count(*)",
    "SELECT $1",
    "SELECT ?",
    "SELECT $name",
    "SELECT 1 -- end",
    "SELECT 1 /* open",
    "SELECT 1) AS t; DROP VIEW scores; --",
    "SELECT 1 LIMIT 5 OFFSET 99999999999999999999",
    "SELECT",
    ";",
    "\0",
    "SELECT '\0'",
    "SELECT 1 \0 ; DROP VIEW scores",
    "\ufeffSELECT 1",
    "SELECT '\ud800'",
    'SELECT 1 AS "\0"',
    "\u200b",
)
"""Queries that reach out of the database, change it, or are no query."""


def damages(good: bytes, number: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """Make damaged files from a good one: name and content."""
    chance = random.Random(seed)
    for at in range(number):
        content = bytearray(good)
        way = ("flipped", "block", "cut", "zeros", "header")[at % 5]
        if way == "flipped":
            for _ in range(chance.choice([1, 10, 1000])):
                content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        elif way == "cut":
            del content[chance.randrange(12, len(content)) :]
        elif way == "header":
            for _ in range(20):
                content[chance.randrange(12, 12288)] = chance.randrange(256)
        else:
            start, size = chance.randrange(12, len(content)), chance.choice([8, 512, 70_000])
            new = bytes(size) if way == "zeros" else chance.randbytes(size)
            content[start : start + size] = new[: len(content) - start]
        yield f"{way} {at}", bytes(content)


def others(folder: Path) -> Iterator[tuple[str, Callable[[Path], object]]]:
    """Give what else can lie in the place of a database: name, and a function that makes it."""

    def archive(path: Path) -> None:
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("inspection.duckdb", "x" * 10_000)

    def beside(path: Path) -> None:
        shutil.copy(folder / "good.duckdb", path)
        path.with_name(f"{path.name}.wal").write_bytes(random.Random(3).randbytes(5000))

    yield "zip", archive
    yield "picture", lambda path: path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(9000))
    yield "SQLite", lambda path: path.write_bytes(b"SQLite format 3\0" + bytes(9000))
    yield "empty", lambda path: path.write_bytes(b"")
    yield "noise", lambda path: path.write_bytes(random.Random(1).randbytes(100_000))
    yield "marked noise", lambda path: path.write_bytes(bytes(8) + b"DUCK" + random.Random(2).randbytes(100_000))
    yield "text", lambda path: path.write_text("run,score\n1,2\n" * 999)
    yield "folder", lambda path: path.mkdir()
    yield "link to nothing", lambda path: path.symlink_to(folder / "nothing")
    yield "link to itself", lambda path: path.symlink_to(path)
    yield "pipe", os.mkfifo
    yield "device", lambda path: path.symlink_to("/dev/zero")
    yield "damaged log", beside
    yield "log that is a pipe", lambda path: (shutil.copy(folder / "good.duckdb", path), os.mkfifo(f"{path}.wal"))


@contextmanager
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Measure the memory of the processes that open the database: the largest size of each, in bytes."""
    peaks: list[int] = []

    class Watched(subprocess.Popen):
        def __init__(self, *given, **options):
            super().__init__(*given, **options)
            threading.Thread(target=self.follow, daemon=True).start()

        def follow(self):
            place = len(peaks)
            peaks.append(0)
            status = Path(f"/proc/{self.pid}/status")
            while self.returncode is None:
                try:
                    ours = "sql/process.py" in Path(f"/proc/{self.pid}/cmdline").read_text()
                    text = status.read_text()
                except OSError:
                    return
                if ours and "VmHWM:" in text:
                    peaks[place] = int(text.split("VmHWM:")[1].split()[0]) << 10
                time.sleep(0.003)

    with monkeypatch.context() as patch:
        patch.setattr(database.subprocess, "Popen", Watched)
        yield peaks
