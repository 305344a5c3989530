"""A module that reads files is among those whose files are damaged on purpose, or there is a reason why not."""

import ast
from pathlib import Path

import idc_core.guarded
from tests.guarded.fuzz import READERS

ROOT = Path(__file__).resolve().parents[2]

GUARDED = {
    "check_sealed_zip",
    "Folder",
    "limits",
    "open_archive",
    "open_arrays",
    "open_gzip",
    "open_sealed_text",
    "opened",
    "picture_header",
    "read_array",
    "read_arrays",
    "read_content",
    "read_json",
    "read_json_lines",
    "read_photo",
    "read_picture",
    "read_text",
    "read_toml",
}
"""Functions of `idc_core.guarded` that read; what needs a text (`typed`) does not count."""

DIRECT = {
    "np": "load loadtxt genfromtxt fromfile memmap",
    "json": "load loads",
    "zipfile": "ZipFile",
    "gzip": "open GzipFile",
    "tarfile": "open",
    "lzma": "open",
    "bz2": "open",
    "Image": "open",
    "csv": "reader DictReader",
    "torch": "load",
    "export": "load",
    "tomllib": "load loads",
    "pickle": "load loads",
    "duckdb": "connect",
    "os": "open",
    "io": "open",
    "mmap": "mmap",
    "ipc": "open_stream open_file",
    "": "open safe_open load_file",
}
"""Calls that read files or what files hold, by the name before the dot; "" is none."""

NOT_TRIED = {
    "idc_core.store.cache": "json.loads: the text that it has just written",
    "idc_core.cli": "os.open: /dev/null, to write",
    "idc_core.base.config": "path.read_text, tomllib.loads: it is tried",
    "idc_core.cli.experiments.claims": "into.read_text: the owner's page, into which it writes",
    "idc_core.opening.criterion_file": "path.read_bytes: code of the owner, of which a fingerprint is taken",
    "idc_core.perturbation.corruptions.digital": "Image.open: a picture that it has just written",
    "idc_core.worth.published": "file.read_text, json.loads: records that come with the program",
    "idc_core.datasets.cifar10": "tarfile.open: a download whose SHA-256 is pinned",
    "idc_core.datasets.files.dialect": "csv.reader: a heading in memory, whose file is tried",
    "idc_core.datasets.files.tables": "json.loads: the text that it has just written",
    "idc_core.models.class_order": "?.read_text: a list of this program",
    "idc_core.datasets.digits": "np.loadtxt: a text in memory, read from a gzip file that is tried",
    "idc_core.datasets.row_cache": "os.open: files of the cache, to write",
    "idc_core.datasets.newsgroups": "tarfile.open: a download whose SHA-256 is pinned",
    "idc_core.base.lazy": "?.read_text: a source of this program",
    "idc_core.models.exported": "export.load: only with --trust, as its owner's code",
    "idc_core.models.loading": "entry.open: a loader of its registry, each of which is tried by itself",
    "idc_core.models.own": "entry.open: a network that code of its owner has made",
    "idc_core.base.own_digest": "path.read_bytes: code of the owner, of which a fingerprint is taken",
    "idc_core.base.growing": "np.fromfile, np.memmap: files without a name that it has just written",
    "idc_core.opening.files": "json.loads: files that the command line named, told to a server and to workers",
    "idc_core.report.charts": "json.loads: a figure that it has just written",
    "idc_core.report.writing": "?.read_text: script and style of the page, which come with the program",
    "idc_core.stories.page_file": "?.read_text: script and style of the page, which come with the program",
    "idc_core.runs.index": "json.loads, path.open, seal.read_text: its seal is checked before",
    "idc_core.sql.database": "ipc.open_stream: the answer of its own process",
    "idc_core.sql.process": "?.open, duckdb.connect, ipc.open_stream, json.loads: it is what is tried",
    "idc_core.store.result_file": ".safe_open, json.loads: it is tried",
    "idc_core.perturbation.transforms": "Image.open: the picture that it has just compressed",
}
"""What reads without `idc_core.guarded`, by module, and why that may be."""


def modules():
    """Every module of the engine but the guarded ones, as name and syntax tree."""
    for file in sorted((ROOT / "idc_core").rglob("*.py")):
        name = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        if not name.startswith("idc_core.guarded"):
            yield name, ast.parse(file.read_text(encoding="utf-8"))


def guarded_readers(tree):
    """Reading functions of `idc_core.guarded` that a module imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("idc_core.guarded"):
            yield from (one.name for one in node.names if one.name in GUARDED)


def writes(call):
    """Whether a call says by a mode that it writes."""
    given = [*call.args, *(one.value for one in call.keywords if one.arg == "mode")]
    return any(isinstance(one, ast.Constant) and one.value in ("w", "wb", "a", "ab", "x", "xb") for one in given)


def direct_readers(tree):
    """Calls in a module that read files by themselves."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or writes(node):
            continue
        if isinstance(node.func, ast.Name):
            before, name = "", node.func.id
        elif isinstance(node.func, ast.Attribute):
            before, name = getattr(node.func.value, "id", getattr(node.func.value, "attr", "?")), node.func.attr
        else:
            continue
        method = name in ("read_bytes", "read_text") or (
            name == "open" and (not node.args or isinstance(node.args[0], ast.Constant))
        )
        if name in DIRECT.get(before, "").split() or (method and isinstance(node.func, ast.Attribute)):
            yield f"{before}.{name}"


def tried():
    return {module for reader in READERS for module in reader.modules}


def test_every_function_that_reads_is_known():
    known = GUARDED | {"Archive", "ArrayFile", "ArrayHeader", "Budget", "File", "PictureHeader", "damaged"}
    known |= {"is_sealed", "member", "pack_arrays", "seal_text", "seal_zip", "typed"}
    assert set(idc_core.guarded.__all__) <= known, "say of a new name whether it reads"


def test_every_module_that_reads_is_tried():
    missing = {name: sorted(set(guarded_readers(tree))) for name, tree in modules() if name not in tried()}
    assert not {name: read for name, read in missing.items() if read}, "give each an entry in tests/guarded"


def test_nothing_reads_around_the_guarded_package():
    found = {name: sorted(set(direct_readers(tree))) for name, tree in modules()}
    found = {name: read for name, read in found.items() if read}
    assert set(found) == set(NOT_TRIED), found
    assert all(", ".join(read) == NOT_TRIED[name].split(":")[0] for name, read in found.items()), found


def test_every_module_that_is_named_is_there():
    assert tried() <= {name for name, _ in modules()}
