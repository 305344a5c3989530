"""What is kept can be asked for and taken away, and nothing else can be done from the SQL box."""

import csv
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import duckdb
import numpy as np
import pytest

from benchmarks.measure import peak_memory
from idc_core.errors import DataError, SettingError
from idc_core.inspection import inspect
from idc_core.inspection.database import PREPARED, VIEWS, database, export, forget, keep, store_path
from idc_core.sql import process
from idc_core.sql.database import Answer
from idc_core.sql.process import REFUSED, _EndError
from tests.inspection.planted import Table, is_letter, letter_number, noisy_table, texts


@pytest.fixture(scope="module")
def found():
    return inspect(Table(noisy_table()), texts(), [is_letter(4), letter_number()], ["pearson", "logistic"], ["units"])


@pytest.fixture
def kept(found, tmp_path, monkeypatch):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    return keep(found, "first")


@pytest.fixture(scope="module")
def kept_once(found, tmp_path_factory):
    """A database for tests that only read it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IDC_HOME", str(tmp_path_factory.mktemp("home")))
        yield keep(found, "once")


def test_views_hold_the_inspection(found, kept):
    columns = "model, layer, unit_group, unit, hypothesis, measure, score, records"
    rows = database().ask(f"SELECT {columns} FROM scores WHERE run = '{kept}'").rows
    names = ("model", "layer", "group", "unit", "hypothesis", "measure", "score", "records")
    expected = list(zip(*(found.table[name].tolist() for name in names), strict=True))
    assert sorted(rows) == sorted(expected)
    assert database().ask("SELECT count(*) FROM units").rows == [(7,)]
    assert database().ask("SELECT hypothesis, kind FROM hypotheses ORDER BY 1").rows == [
        ("is 4", "binary"),
        ("number", "number"),
    ]
    assert database().ask("SELECT name, records, scores FROM runs").rows == [("first", 400, len(found))]


def test_units_have_their_mean_and_deviation(kept_once):
    units = noisy_table()[texts().inputs].reshape(-1, 7)
    rows = database().ask("SELECT mean, deviation FROM units ORDER BY unit").rows
    assert np.array(rows) == pytest.approx(np.stack([units.mean(0), units.std(0)], 1), abs=1e-6)


@pytest.mark.parametrize("name", PREPARED)
def test_prepared_questions_are_answered(kept_once, name):
    answer = database().ask(PREPARED[name].sql)
    assert answer.columns
    assert answer.rows or name == "unexplained"
    assert len(PREPARED) == 6


def test_the_best_unit_comes_first(found, kept_once):
    rows = database().ask(PREPARED["best-units"].sql).rows
    first = found.where(measure="pearson")[0]
    assert rows[0][:4] == tuple(found.table[name][first] for name in ("hypothesis", "model", "layer", "unit"))


@pytest.fixture(scope="module")
def counts(kept_once):
    """Number of lines of every view."""
    (row,) = database().ask("SELECT " + ", ".join(f"(SELECT count(*) FROM {view})" for view in VIEWS)).rows
    return dict(zip(VIEWS, row, strict=True))


@pytest.mark.parametrize("view", VIEWS)
def test_export(kept_once, counts, tmp_path, view):
    export(view, tmp_path / "out.csv", run=kept_once)
    with (tmp_path / "out.csv").open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == counts[view]
    with pytest.raises(SettingError, match="ends in"):
        export(view, tmp_path / "out.xls")
    with pytest.raises(SettingError, match="cannot be written"):
        export(view, tmp_path / "nowhere" / "out.csv")


def test_an_exported_table_holds_no_formulas(found, tmp_path, monkeypatch):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    names = ["=cmd|' /c calc'!A1", "-0.5", "@SUM(A1)", "cat"]
    hypotheses = tuple((name, "=1+1", "yes or no") for name in names)
    keep(replace(found, hypotheses=hypotheses))
    export("hypotheses", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["hypothesis"] for row in rows] == ["'=cmd|' /c calc'!A1", "-0.5", "'@SUM(A1)", "cat"]
    assert {row["family"] for row in rows} == {"'=1+1"}


def test_what_a_full_disk_left_is_made_anew(found, tmp_path, monkeypatch):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    store_path().touch()
    with pytest.raises(DataError, match="There is no inspection yet"):
        database().ask("SELECT * FROM runs")
    run = keep(found, "first")
    assert database().ask("SELECT run FROM runs").rows == [(run,)]
    assert {path.name for path in tmp_path.iterdir()} == {"inspection.duckdb"}


def test_a_database_is_made_whole_or_not_at_all(found, tmp_path, monkeypatch):
    """As on a full disk: the process that makes it may write no byte."""
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    text, narrow = Path(process.__file__).read_text(encoding="utf-8"), tmp_path / "narrow" / "process.py"
    narrow.parent.mkdir()
    narrow.write_text(text.replace("LIMITS = _Limits()", "LIMITS = _Limits(file_bytes=6000)"), encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setattr(process, "__file__", str(narrow))
        with pytest.raises(DataError, match="cannot be"):
            keep(found, "first")
    assert {path.name for path in tmp_path.iterdir()} == {"narrow"}
    keep(found, "first")


def test_export_as_parquet(kept_once, counts, tmp_path):
    import pyarrow.parquet

    export("scores", tmp_path / "out.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "out.parquet").num_rows == counts["scores"]


@pytest.mark.rare
def test_forgetting_a_run_leaves_the_others(found, kept):
    second = keep(found, "second")
    forget(kept)
    assert database().ask("SELECT DISTINCT run FROM scores").rows == [(second,)]
    assert database().ask("SELECT name FROM runs").rows == [("second",)]


FORBIDDEN = (
    "COPY scores TO '{folder}/out.csv'",
    "COPY (SELECT 1) TO '{folder}/out.csv'",
    "ATTACH '{folder}/other.duckdb'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "INSERT INTO kept.runs (run) VALUES ('x')",
    "DELETE FROM kept.scores",
    "UPDATE kept.scores SET score = 1",
    "DROP VIEW scores",
    "CREATE TABLE mine AS SELECT 1",
    "CREATE TEMP TABLE mine AS SELECT 1",
    "CREATE MACRO f() AS 1",
    "SET enable_external_access = true",
    "RESET enable_external_access",
    "PRAGMA database_list",
    "EXPORT DATABASE '{folder}/all'",
    "CALL pragma_version()",
    "CHECKPOINT",
    "SELECT 1; SELECT 2",
    "SELECT 1; DROP VIEW scores",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_blob('/etc/passwd')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM glob('/etc/*')",
    "SELECT * FROM read_csv('https://example.org/a.csv')",
    "SELECT * FROM read_parquet('{folder}/x.parquet')",
    "SELECT getenv('HOME')",
    "SELECT * FROM read_text('/proc/self/environ')",
    "SELECT * FROM read_json('/etc/passwd')",
    "SELECT * FROM sniff_csv('/etc/passwd')",
    "SELECT * FROM query('COPY scores TO ''{folder}/out.csv''')",
    "SELECT * FROM duckdb_secrets()",
    "SET VARIABLE a = 1",
    "ALTER TABLE kept.scores ADD COLUMN mine INT",
    "IMPORT DATABASE '{folder}/all'",
    "PREPARE mine AS SELECT 1",
    "EXPLAIN ANALYZE SELECT 1",
    "VACUUM",
    "SELECT nonsense FROM scores",
    "not even SQL",
    "",
)


@contextmanager
def untouched(folder):
    """Nothing is written, into the database or beside it."""
    before, files = store_path().read_bytes(), set(folder.iterdir())
    yield
    assert store_path().read_bytes() == before
    assert set(folder.iterdir()) == files


@pytest.mark.parametrize("sql", FORBIDDEN)
def test_the_database_can_only_be_asked(kept_once, tmp_path, sql):
    """What the process does with a query, done in this one: to start one takes thirty times as long."""
    question = sql.format(folder=tmp_path)
    job = {"path": str(store_path()), "seconds": 10.0, "question": question}
    with untouched(tmp_path), pytest.raises(_EndError) as end:
        process._do(job)
    assert end.value.args[0] == REFUSED


@pytest.mark.parametrize("sql", ["DELETE FROM kept.scores", "SELECT * FROM read_text('/etc/passwd')", ""])
def test_the_box_can_only_ask(kept_once, tmp_path, sql):
    with untouched(tmp_path), pytest.raises(SettingError, match="The query failed"):
        database().ask(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "WITH RECURSIVE endless AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM endless) SELECT count(*) FROM endless",
        "SELECT count(*) FROM range(1000000000) a, range(1000000000) b",
        "SELECT count(*) FROM range(100000000000) a WHERE a.range % 7 = 3",
    ],
)
def test_what_takes_too_long_is_broken_off(kept_once, sql):
    started = time.monotonic()
    with pytest.raises(SettingError, match=r"longer than 0.5 s|Out of Memory"):
        database().ask(sql, seconds=0.5)
    assert time.monotonic() - started < 30  # far from forever, however busy the machine
    assert database().ask("SELECT 1").rows == [(1,)]


def test_large_answers_are_cut(kept_once):
    answer = database().ask("SELECT * FROM range(20000)")
    assert (len(answer.rows), answer.cut) == (10_000, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT repeat('x', 900000000)",
        pytest.param("SELECT repeat('x', 100000000) FROM range(20)", marks=pytest.mark.slow),
        pytest.param("SELECT list(range) FROM range(10000000000)", marks=pytest.mark.slow),
        "SELECT list(range ORDER BY random()) FROM range(1000000000)",
    ],
)
def test_what_would_fill_the_memory_is_refused(kept_once, sql):
    def asked():
        with pytest.raises(SettingError, match=r"emory|MB"):
            database().ask(sql, seconds=60)

    assert peak_memory(asked) < 100 << 20


def test_answers_have_their_types(kept_once):
    answer = database().ask(
        "SELECT 1 AS a, 2.5::DOUBLE AS b, 'x' AS c, TIMESTAMP '2026-11-20 01:02:03' AS d, NULL AS e, [1, 2] AS a"
    )
    assert answer.columns == ("a", "b", "c", "d", "e", "a_1")
    assert answer.rows == [(1, 2.5, "x", datetime(2026, 11, 20, 1, 2, 3), None, [1, 2])]
    assert database().ask("SELECT run FROM runs WHERE false") == Answer(("run",), [], False)


OLD = """
CREATE SCHEMA kept;
CREATE TABLE kept.runs (
    run VARCHAR, made_at TIMESTAMP, name VARCHAR, dataset VARCHAR, split VARCHAR, records BIGINT, scores BIGINT,
    seed BIGINT, error DOUBLE, confidence DOUBLE, discovery_rate DOUBLE, about VARCHAR);
CREATE TABLE kept.hypotheses (run VARCHAR, hypothesis VARCHAR, family VARCHAR, kind VARCHAR);
CREATE TABLE kept.units (
    run VARCHAR, model VARCHAR, fingerprint VARCHAR, layer VARCHAR, unit BIGINT, mean DOUBLE, deviation DOUBLE);
CREATE TABLE kept.scores (
    run VARCHAR, model VARCHAR, layer VARCHAR, unit_group VARCHAR, unit BIGINT, hypothesis VARCHAR, measure VARCHAR,
    score DOUBLE, low DOUBLE, high DOUBLE, margin DOUBLE, p_value DOUBLE, records BIGINT, discovery BOOLEAN);
CREATE VIEW runs AS SELECT * FROM kept.runs;
CREATE VIEW hypotheses AS SELECT * FROM kept.hypotheses;
CREATE VIEW units AS SELECT * FROM kept.units;
CREATE VIEW scores AS SELECT * FROM kept.scores;
INSERT INTO kept.scores VALUES ('old', 'm', 'l', '', 3, 'h', 'pearson', 0.5, 0.4, 0.6, 0, 0.01, 400, true);
INSERT INTO kept.runs (run, name) VALUES ('old', 'once');
"""
"""What the studio wrote before scores had remarks."""


@pytest.fixture
def old(tmp_path, monkeypatch):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    with duckdb.connect(str(store_path())) as connection:
        connection.execute(OLD)


@pytest.mark.slow
@pytest.mark.parametrize("first", ["ask", "export", "keep", "forget"])
def test_a_file_of_an_earlier_version_is_brought_up_to_date(old, found, tmp_path, first):
    if first == "export":
        export("scores", tmp_path / "out.csv")
        with (tmp_path / "out.csv").open(encoding="utf-8") as file:
            assert next(csv.DictReader(file))["remark"] == ""
    if first == "keep":
        run = keep(found, "new")
        assert database().ask(f"SELECT count(*) FROM scores WHERE run = '{run}'").rows == [(len(found),)]
    if first == "forget":
        forget("nothing")
    columns = "run, unit, score, s.records, remark, discovery, name"
    wanted = f"SELECT {columns} FROM scores s JOIN runs USING (run) WHERE run = 'old'"
    assert database().ask(wanted).rows == [("old", 3, 0.5, 400, "", True, "once")]


@pytest.mark.slow
def test_processes_wait_for_each_other(kept, found):
    """One asks, in a process of its own, while another writes; both come to their end."""
    slow = "SELECT count(*) FROM range(100000000000) a WHERE a.range % 7 = 3"
    with ThreadPoolExecutor(3) as pool:
        asking = pool.submit(database().ask, slow, seconds=2.0)
        keeping = [pool.submit(keep, found, f"other {number}") for number in range(2)]
        with pytest.raises(SettingError, match="longer than"):
            asking.result()
        runs = [one.result() for one in keeping]
    assert {name for (name,) in database().ask("SELECT run FROM runs").rows} == {kept, *runs}
    with duckdb.connect(str(store_path())) as writing, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(database().ask, "SELECT count(*) FROM runs", seconds=20.0)
        time.sleep(0.5)
        assert not waiting.done(), "another process writes"
        writing.close()
        assert waiting.result().rows == [(3,)]


def test_no_database_yet(tmp_path):
    with pytest.raises(DataError, match="no inspection yet"):
        database(tmp_path / "none.duckdb").ask("SELECT 1")
    with pytest.raises(DataError, match="no inspection yet"):
        export("runs", tmp_path / "a.csv", tmp_path / "none.duckdb")
    (tmp_path / "broken.duckdb").write_bytes(b"no database" * 1000)
    with pytest.raises(DataError, match="is not a DuckDB database; the DuckDB database of inspections was expected"):
        database(tmp_path / "broken.duckdb").ask("SELECT 1")
