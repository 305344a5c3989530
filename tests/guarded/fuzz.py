"""The program that reads damaged files: `python -m tests.guarded.fuzz WORK EFFORT SEED [NAME ...]`.

A process of its own, so that its memory is its own, and a reader that takes it down takes nothing else with it.
It writes `report.json` into the folder WORK, and every file that gave what it must not into WORK/failed.
"""

import json
import os
import resource
import sys
import time
import traceback
import warnings
from pathlib import Path
from random import Random

from idc_core.errors import IdcError
from idc_core.models.registry import MODELS
from tests.guarded import damage, network_files
from tests.guarded.data_files import DATA
from tests.guarded.folder_files import FOLDERS
from tests.guarded.kept_files import KEPT
from tests.guarded.library_files import LIBRARY
from tests.guarded.measured import Hang, no_longer_than, peak
from tests.guarded.network_files import NETWORK_FILES
from tests.guarded.own_files import OWN
from tests.guarded.picture_files import PICTURE_FILES
from tests.guarded.published_files import PUBLISHED
from tests.guarded.reader import plain
from tests.guarded.result_files import RESULT_FILES

PROCESSES = ((*OWN, *PICTURE_FILES, *NETWORK_FILES, *KEPT, *PUBLISHED, *LIBRARY, *RESULT_FILES), (*DATA, *FOLDERS))
"""Every reader of files, by the process that tries it: what libraries keep of one half does not count for the other."""

READERS = tuple(reader for readers in PROCESSES for reader in readers)
"""Every reader of files: what a module that reads files must be named in."""

SECONDS = 5
"""A call may take so long, in seconds of the processor; what the system takes to read a file is the machine's."""
HANG = 60
"""A call that has not ended after so many seconds waits for something."""
MEMORY = 1 << 30
"""Bytes that all readings may take beyond what the process holds at the beginning, written or not."""
MOST_FAILURES = 10
THIN, LESS_THIN = 16, 4
"""The tests read one copy in so many: the first of the readers that have many, the other of those that take long."""


class FailedError(Exception):
    """A call gave what it must not."""


def outcome(reader, path, good, family):
    """Read a file: "refused", "equal" or "other"; `FailedError` where it is none of what is allowed."""
    begun = os.times().user
    try:
        with no_longer_than(HANG):
            result = reader.read(path)
            found = "equal" if plain(result) == good else "other"
    except IdcError as error:
        message = str(error)
        if not message.strip() or len(message) > 5000:
            raise FailedError(f"a message of {len(message):,} characters") from error
        found = "refused"
    except Hang:
        raise FailedError(f"no end after {HANG} s") from None
    except Exception as error:
        raise FailedError("".join(traceback.format_exception(error)[-6:])) from error
    taken = os.times().user - begun
    if taken > SECONDS:
        raise FailedError(f"{taken:.1f} s")
    if found == "other" and family not in reader.differs:
        raise FailedError("another result than the good file's, and no error")
    if found == "other" and not reader.valid(result):
        raise FailedError("a result that the format does not allow")
    return found


def copies(reader, content, effort, random):
    """Every changed copy of a good file: what was done by name, in words, and the content."""
    heads = reader.heads(content)
    yield from (("damage", *one) for one in damage.every_byte(content, heads, reader.flips * effort, min(8, effort)))
    yield from (("damage", *one) for one in damage.truncations(content, heads, reader.flips * effort // 8))
    ways = [("damage", damage.anything), *reader.crafts.items()]
    for number in range(reader.tries * effort):
        family, change = ways[number % len(ways)]
        yield family, f"{family}, number {number}", change(content, random)


def special(path, content):
    """Put something that is no file of a reasonable size in a file's place, one after the other."""
    path.unlink()
    yield "absent"
    os.mkfifo(path)
    yield "a pipe"
    path.unlink()
    path.mkdir()
    yield "a folder"
    path.rmdir()
    for target in ("nowhere", path.name, "/dev/zero", "/dev/tty", "."):
        path.symlink_to(target)
        yield f"a link to {target}"
        path.unlink()
    path.write_bytes(b"")
    yield "empty"
    path.write_bytes(content)
    os.truncate(path, 48 << 20)
    yield "48 MB of zeros behind it"
    os.truncate(path, 1100 << 20)  # of which the disk holds nothing
    yield "1.1 GB of zeros behind it"
    os.truncate(path, len(content))


def others(folder, path):
    """All files of a reader but its cache and the one that is damaged."""
    return sorted(str(one) for one in folder.rglob("*") if one != path and folder / "home" not in one.parents)


def attempt(reader, work, effort, seed):
    """Read every copy of one reader's file; return what came of it."""
    folder = work / "readers" / reader.name
    for name in ("home", "data"):
        (folder / name).mkdir(parents=True)
    os.environ |= {"IDC_HOME": str(folder / "home"), "IDC_DATA": str(folder / "data")}
    os.environ.pop("IDC_CONFIG", None)
    begun = time.process_time()
    found = {"refused": 0, "equal": 0, "other": 0, "failures": []}
    try:
        path = reader.prepare(folder)
        content = path.read_bytes()
        good, again = plain(reader.read(path)), plain(reader.read(path))
        before = others(folder, path)
    except Exception:
        return found | {"failures": [traceback.format_exc()], "seconds": 0, "bytes": 0}
    if good != again:
        found["failures"].append(f"{reader.name}: the good file is not read alike twice")

    def read(family, what, changed):
        try:
            found[outcome(reader, path, good, family)] += 1
        except FailedError as error:
            kept = work / "failed" / f"{reader.name.replace(' ', '-')}-{len(found['failures'])}{path.suffix}"
            kept.parent.mkdir(exist_ok=True)
            kept.write_bytes(changed)
            found["failures"].append(f"{reader.name}: {what}: {error}\nThe file is {kept}, the seed {seed}.")

    share = 1 / (THIN if reader.tries > 100 else LESS_THIN if reader.tries > 10 else 1) if effort == 1 else 1
    draw = Random(f"{seed} {reader.name}, which of them")
    changes = copies(reader, content, effort, Random(f"{seed} {reader.name}"))
    for number, (family, what, changed) in enumerate(one for one in changes if draw.random() < share):
        path.write_bytes(changed)
        # Files are told apart by their times where they are read once; times are coarser than this.
        os.utime(path, ns=(number, number))
        read(family, what, changed)
        if len(found["failures"]) >= MOST_FAILURES:
            break
    for what in special(path, content) if reader.special else ():
        read("special", what, b"")
    if others(folder, path) != before:
        found["failures"].append(f"{reader.name}: files came or went: {set(others(folder, path)) ^ set(before)}")
    return found | {"seconds": time.process_time() - begun, "bytes": len(content)}


def main():
    """Try all readers, or those that are named."""
    MODELS.update({one.name: one for one in (network_files.TRAINED, network_files.PUBLISHED)})
    work, effort, seed, names = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:]
    warnings.simplefilter("ignore")  # zipfile and Pillow warn of what is done here on purpose
    empty = {name: work / name for name in ("HOME", "TMPDIR", "CWD")}
    for name, folder in empty.items():
        folder.mkdir()
        os.environ[name] = str(folder)
    os.chdir(empty["CWD"])

    report = {}
    started = peak()
    held = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_DATA, (held + MEMORY + (256 << 20), resource.RLIM_INFINITY))
    for reader in READERS:
        if not names or reader.name in names:
            sys.stderr.write(f"{reader.name}\n")  # the last one, where the process is taken down
            before = peak()
            report[reader.name] = attempt(reader, work, effort, seed) | {"grown": peak() - before}
    left = [str(one) for folder in empty.values() for one in folder.rglob("*")]
    content = {"readers": report, "started": started, "grown": peak() - started, "left": left}
    (work / "report.json").write_text(json.dumps(content))


if __name__ == "__main__":
    main()
