"""Whatever query or file is given to the SQL box: an answer or an `IdcError`, within its limits, and nothing left."""

import random
import re
import time

import duckdb
import pytest

from idc_core.errors import DataError, IdcError, SettingError
from idc_core.inspection.database import database, export, forget
from idc_core.sql import database as parent
from idc_core.sql import process
from idc_core.sql.process import LIMITS
from tests.inspection import hostile

SLACK_S = 5
MOST_MEMORY = 1 << 30

ROWS = """INSERT INTO kept.scores SELECT 'r', 'm', 'l', '', range, 'h', 'pearson', range / 2e4, 0, 1, 0, 0.1, 400, '',
    true FROM range(20000)"""


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A folder with a database, another one, and a file that nobody may read."""
    folder = tmp_path_factory.mktemp("good")
    database(folder / "good.duckdb").write([(ROWS, ()), ("INSERT INTO kept.runs (run, name) VALUES ('r', 'n')", ())])
    duckdb.connect(str(folder / "other.duckdb")).execute("CREATE TABLE hidden AS SELECT 'SECRET' AS s").close()
    (folder / "secret.csv").write_text("SECRET,b\n1,2\n")
    return folder


def attempt(good, sql, seconds):
    """Ask; return the answer, or the error's text."""
    before = {path.name: path.read_bytes() for path in good.iterdir()}
    started = time.monotonic()
    try:
        said = repr(database(good / "good.duckdb").ask(sql, seconds).rows)
    except IdcError as error:
        said = str(error)
        assert len(said) < 2 * LIMITS.message
    assert time.monotonic() - started < seconds + SLACK_S
    assert {path.name: path.read_bytes() for path in good.iterdir()} == before, "nothing is written"
    return said


def reaching(good):
    return [sql.replace("{folder}", str(good)).replace("{{", "{").replace("}}", "}") for sql in hostile.REACHING]


ALL = (*hostile.TYPES, *hostile.DEEP, *hostile.LARGE)


@pytest.mark.slow
@pytest.mark.parametrize("part", ["reaching", "others"])
def test_some_hostile_queries(good, monkeypatch, part):
    some = random.Random(part).sample(reaching(good) if part == "reaching" else list(ALL), 3)
    with hostile.watched(monkeypatch) as peaks:
        for sql in some:
            assert "'SECRET" not in attempt(good, sql, 30)
    assert max(peaks) < MOST_MEMORY


@pytest.mark.parametrize(
    ("step", "of_long"),
    [pytest.param(6, 3, marks=pytest.mark.slow), pytest.param(1, 1, marks=pytest.mark.rare)],
    ids=["some", "all"],
)
def test_many_hostile_queries(good, monkeypatch, step, of_long):
    """Of those that run for ever each takes the time that it may."""
    asked = [*reaching(good)[::step], *ALL[::step], *hostile.LONG[::of_long]]
    with hostile.watched(monkeypatch) as peaks:
        for sql in asked:
            assert "'SECRET" not in attempt(good, sql, 2), sql
    assert max(peaks) < MOST_MEMORY
    assert len(peaks) > 0.8 * len(asked), "the others are refused before they are read"


def damaged(good, place, make, acts=("ask", "export", "forget")):
    """Do what can be done with a file; return what is said of a question."""
    said = ""
    for act in acts:
        folder = place / act
        folder.mkdir(parents=True)
        path = folder / "inspection.duckdb"
        make(path)
        try:
            if act == "ask":
                said = repr(database(path).ask("SELECT sum(score), min(run), max(remark) FROM scores", 30.0).rows)
            elif act == "export":
                export("scores", folder / "out.csv", path)
            else:
                forget("r", path)
        except IdcError as error:
            said = said or str(error)
        names = {"inspection.duckdb", "inspection.duckdb.wal", "out.csv"}
        assert {one.name for one in folder.iterdir()} <= names
    return said


OTHERS = {
    "zip": "is not a DuckDB database",
    "picture": "is not a DuckDB database",
    "SQLite": "is an SQLite database; the DuckDB database of inspections was expected there",
    "empty": "There is no inspection yet",
    "noise": "is not a DuckDB database",
    "marked noise": "cannot be opened",
    "text": "is not a DuckDB database",
    "folder": "is not a file",
    "link to nothing": "is not a file",
    "link to itself": "is not a file",
    "pipe": "is not a file",
    "device": "is not a file",
    "log that is a pipe": "has a log (.wal) that is not a file",
}


@pytest.mark.parametrize("name", ["SQLite", "folder", "pipe", "device", "marked noise", "log that is a pipe"])
def test_what_is_no_database_is_named(good, tmp_path, name):
    path = tmp_path / "inspection.duckdb"
    dict(hostile.others(good))[name](path)
    with pytest.raises(DataError, match=re.escape(OTHERS[name])):
        database(path).ask("SELECT 1")


@pytest.mark.slow
def test_damaged_files(good, tmp_path, monkeypatch):
    monkeypatch.setattr(parent, "LIMITS", LIMITS._replace(writing_seconds=30.0))
    with hostile.watched(monkeypatch) as peaks:
        for place, (name, make) in enumerate(hostile.others(good)):
            acts = ("ask", "export" if place % 2 else "forget")
            assert OTHERS.get(name, "") in damaged(good, tmp_path / name, make, acts), name
        content = (good / "good.duckdb").read_bytes()
        for name, bad in hostile.damages(content, 5, seed=7):
            damaged(good, tmp_path / name, lambda path, bad=bad: path.write_bytes(bad))
    assert max(peaks) < MOST_MEMORY


def test_two_damaged_files(good, tmp_path):
    for name, bad in hostile.damages((good / "good.duckdb").read_bytes(), 2, seed=11):
        damaged(good, tmp_path / name, lambda path, bad=bad: path.write_bytes(bad))


def test_a_damaged_file_is_not_waited_for(good, tmp_path, monkeypatch):
    """The words of the error hold "block", which is no lock: the file is tried once."""
    tried = []

    def fail(*given, **options):
        tried.append(given)
        raise duckdb.IOException("Corrupt database file: computed checksum does not match, block 1 is not blocked")

    monkeypatch.setattr(duckdb, "connect", fail)
    with pytest.raises(duckdb.IOException):
        process.connect(str(good / "good.duckdb"), read_only=True, wait=15.0)
    assert len(tried) == 1
    path = tmp_path / "inspection.duckdb"
    path.write_bytes((good / "good.duckdb").read_bytes()[:12] + bytes(100_000))
    with pytest.raises(DataError, match="cannot be opened"):
        database(path).ask("SELECT 1")


def test_what_is_broken_off_leaves_nothing_and_what_lay_there_is_swept(good, tmp_path):
    path = tmp_path / "inspection.duckdb"
    path.write_bytes((good / "good.duckdb").read_bytes())
    spilled = tmp_path / "inspection.duckdb.tmp"
    for rest in ("duckdb_temp_storage_DEFAULT-0.tmp", "duckdb_temp_block-3.block"):
        spilled.mkdir(exist_ok=True)
        (spilled / rest).write_bytes(b"x" * 1000)
    assert database(path).ask("SELECT 1").rows == [(1,)]
    assert not spilled.exists()
    with pytest.raises(SettingError, match=r"longer than 2 s|Out of Memory"):
        database(path).ask(hostile.LONG[1], 2.0)
    assert {one.name for one in tmp_path.iterdir()} == {"inspection.duckdb"}
    spilled.mkdir()
    (spilled / "mine.txt").write_text("not the database's")
    assert database(path).ask("SELECT 1").rows == [(1,)]
    assert (spilled / "mine.txt").exists()


def test_values_that_python_has_no_type_for_come_as_text(good):
    answer = database(good / "good.duckdb").ask(hostile.TYPES[2])
    assert answer.rows == [("infinity", "-infinity", "290000-01-01", "1000-01-01 (BC)")]
    every = database(good / "good.duckdb").ask("SELECT * FROM test_all_types()")
    found = dict(zip(every.columns, every.rows[1], strict=True))
    assert found["date"] == "5881580-07-10"
    assert found["uhugeint"] == str(2**128 - 1)
    assert found["hugeint"] == str(2**127 - 1)
    assert found["time"] == "24:00:00"
    assert found["int_array"] == [42, 999, None, None, -42]
    assert found["date_array"] == "[1970-01-01, infinity, -infinity, NULL, 2022-05-12]"
    assert found["map"] == [("key1", "🦆🦆🦆🦆🦆🦆"), ("key2", "goose")]
    assert (found["union"], found["bit"], found["interval"]) == (
        "5",
        "10101",
        "83 years 3 months 999 days 00:16:39.999999",
    )


def test_a_query_is_refused_by_length_and_nesting_before_it_is_read(good, monkeypatch):
    monkeypatch.setattr(parent.subprocess, "run", None)
    ask = database(good / "good.duckdb").ask
    with pytest.raises(SettingError, match="has 200,008 characters, and may have 20,000"):
        ask("SELECT " + "(" * 100_000 + "1" + ")" * 100_000)
    with pytest.raises(SettingError, match="has 101 brackets inside one another, and may have 100"):
        ask("SELECT " + "(" * 101 + "1" + ")" * 101)
    with pytest.raises(SettingError, match="has 101 brackets"):
        ask("SELECT " + "(')'||" * 101 + "'1'" + ")" * 101)
    with pytest.raises(SettingError, match="half of a character"):
        ask("SELECT '\ud800'")


def test_brackets_in_strings_and_comments_do_not_count(good):
    sql = "SELECT '" + "(" * 200 + "' AS \"" + "[" * 200 + '" -- ' + "(" * 200 + "\n/* " + "{" * 200 + " */"
    assert database(good / "good.duckdb").ask(sql).rows == [("(" * 200,)]


def test_an_answer_has_so_many_values_and_bytes(good):
    with pytest.raises(SettingError, match="has 3,000,001 values, and may have 1,000,000"):
        database(good / "good.duckdb").ask("SELECT list(NULL) FROM range(3000000)")
    with pytest.raises(SettingError, match="has 95 MB, and may have 16"):
        database(good / "good.duckdb").ask("SELECT repeat('x', 10000) FROM range(10000)")


def test_no_connection_loads_extensions_or_can_be_opened_up(good):
    names = "enable_external_access", "autoinstall_known_extensions", "autoload_known_extensions"
    asked = ", ".join(
        f"current_setting('{name}')::VARCHAR" for name in (*names, "lock_configuration", "temp_directory")
    )
    assert database(good / "good.duckdb").ask(f"SELECT {asked}").rows == [("false", "false", "false", "true", "")]


def test_a_view_that_reads_files_reads_none(good, tmp_path):
    """A database from elsewhere may hold views of its own under the names of ours."""
    path = tmp_path / "inspection.duckdb"
    path.write_bytes((good / "good.duckdb").read_bytes())
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE OR REPLACE VIEW runs AS SELECT *, 'r' AS run FROM read_csv('{good}/secret.csv')")
    for act in (lambda: database(path).ask("SELECT * FROM runs"), lambda: export("runs", tmp_path / "out.csv", path)):
        with pytest.raises(IdcError, match="file system operations are disabled"):
            act()
    assert not (tmp_path / "out.csv").exists()
