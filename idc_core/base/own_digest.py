"""What a person's code computes, as a digest: files with all that they import and read, and what an object reaches."""

from __future__ import annotations

import ast
import dis
import functools
import hashlib
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import is_dataclass
from pathlib import Path
from types import CodeType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

import numpy as np

from idc_core.base.own_code import source_of
from idc_core.base.own_modules import OURS, Home, home_of, is_own

_SMALL = 1 << 20
"""Bytes of a file that code names, such as a configuration: weights and data, which are larger, are told by content."""

_MOST_OF_CODE = 1 << 24
"""Bytes of a file of code."""

_LONGEST = 200
_NAMED_FILE = re.compile(r"[^\0\n]*[^\s/\\\0]\.\w{1,8}")
_IS_PYTHONS = re.compile(r"__\w+__|_abc_impl")
"""Attributes of a class that Python sets, some of them when it first copies an object; methods are a person's."""

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_MOST = 200_000
"""Objects that are looked at."""

_Parts = tuple[str, list[object]]


def code_digest(function: Callable[..., object], *made: object) -> str:
    """Return hexadecimal digits that change with the code around a function, and with what it has `made`.

    That is its file with what it imports, or names, of a person's own: modules wherever they lie, also those imported
    within a function; of other files the small ones. What is read from a file that holds no code tells it as the
    attribute `digest`. What was made counts as in `reached_digest`.
    """
    known = getattr(function, "digest", None)
    if known is not None:
        return f"{known}{reached_digest(*made) if made else ''}"
    reached = _Reached({source_of(function)[0]})
    reached.take(made)
    return reached.hexdigest()


def reached_digest(*roots: object) -> str:
    """Return 16 hexadecimal digits that change with what can be reached from objects and decides what they compute.

    That is code, attributes, closures, global values that code names, and files as in `code_digest`; of installed
    libraries the names alone. The parameters and buffers that a state dict holds are left out.
    """
    reached = _Reached()
    reached.take(roots)
    return reached.hexdigest()


def _read(path: Path) -> bytes:
    """Return what is in a file of code; of one too large to be code its size and time, of a device or pipe nothing."""
    about = path.stat()
    if not stat.S_ISREG(about.st_mode):
        return b""
    return path.read_bytes() if about.st_size <= _MOST_OF_CODE else f"{about.st_size} {about.st_mtime_ns}".encode()


def files_of(begin: Iterable[Path]) -> set[Path]:
    """Return Python files, the person's files that they import, and small files that their code names."""
    left = [(file, home_of(str(file))) for file in begin]
    left += [(file, home) for _, home in left if home for file in home.began]
    places = {home: [Path(one).absolute() for one in (*(home.path if home else ()), *sys.path)] for _, home in left}
    seen: set[tuple[Path, Home | None]] = set()
    named: set[Path] = set()
    while left:
        one, home = left.pop()
        if (one, home) in seen:
            continue
        seen.add((one, home))
        try:
            names, texts = _looked_at(_read(one))
        except (OSError, SyntaxError, ValueError):  # no code, such as the name of a notebook's cell
            continue
        root = one.parent
        while (root / "__init__.py").is_file():
            root = root.parent
        for text in texts:
            named |= _named(text, one.parent)
        for level, name in names:
            found = _of_name(name, one.parents[level - 1 : level] if level else [root, *places[home]])
            left += [(file, home) for file in found]
    return named.union(file for file, _ in seen)


@functools.lru_cache(512)
def _looked_at(content: bytes) -> tuple[list[tuple[int, str]], list[str]]:
    """Return what the code of a file imports, each with the dots before its name, and the texts that may name files."""
    names, texts = [], []
    for node in ast.walk(ast.parse(content)):
        if isinstance(node, ast.Import):
            names += [(0, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            before = f"{node.module}." if node.module else ""
            names += [(node.level, f"{before}{alias.name}") for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(text := node.value, str):
            texts += [text] if len(text) < _LONGEST and _NAMED_FILE.fullmatch(text) else []
    return [(level, name) for level, name in names if level or name.split(".")[0] not in OURS], texts


def _of_name(name: str, places: Sequence[Path]) -> Iterator[Path]:
    """Yield the files that run where a name is imported, as far as they are a person's: packages, and the module."""
    for part in name.split("."):
        for place in places:
            package, module = place / part / "__init__.py", place / f"{part}.py"
            if found := next((path for path in (package, module) if path.is_file()), None):
                if not is_own(str(found)):
                    return
                yield found
                places = [found.parent] if found == package else []
                break
        else:
            places = [place / part for place in places if (place / part).is_dir()]


def _named(text: str, folder: Path) -> set[Path]:
    """Return the small file that a text in a file's code names, from the folder that it lies in."""
    with suppress(OSError, ValueError):
        if (path := folder / text).is_file() and path.stat().st_size <= _SMALL:
            return {path}
    return set()


def _file_of(value: Any) -> str | None:
    """Return the file of a person's function or class, "<...>" where it was typed in; None of all others."""
    name = str(getattr(value, "__module__", None) or "")
    if name.split(".")[0] in {*OURS, "torch", "builtins"}:
        return None
    held = vars(value).values() if isinstance(value, type) else (value,)  # a compiled function's class has no code
    code = next((code for one in held if isinstance(code := getattr(one, "__code__", None), CodeType)), None)
    module = sys.modules.get(name)
    file = code.co_filename if code else ""
    if not file or file.startswith("<"):
        file = getattr(module, "__file__", None) or ("<typed in>" if name == "__main__" or module is None else "")
    return file if file.startswith("<typed") or is_own(file) else None


class _Reached:
    """Looks at objects, each once, in an order that is the same in every process."""

    def __init__(self, files: Iterable[str] = ()) -> None:
        self._digest = hashlib.sha256()
        self._places: dict[int, int] = {}
        self._held: list[object] = []  # so that no number is given twice
        self._files = set(files)
        self._kinds: dict[type, tuple[list[object], set[str]]] = {}

    def hexdigest(self) -> str:
        """Return the digits, those of files included."""
        for path in sorted(files_of(Path(file) for file in self._files if not file.startswith("<"))):
            with suppress(OSError):
                self._say(hashlib.sha256(_read(path)).hexdigest())
        return self._digest.hexdigest()[:16]

    def take(self, root: object) -> None:
        """Look at an object and all that it leads to."""
        stack = [root]
        while stack and len(self._held) < _MOST:
            value = stack.pop()
            if isinstance(value, bytes):
                value = hashlib.sha256(value).hexdigest()
            if value is None or isinstance(value, bool | int | float | complex | str):
                self._say(f"{type(value).__name__} {value!r}")
                continue
            if (place := self._places.get(id(value))) is not None:
                self._say(f"again {place}")
                continue
            self._places[id(value)] = len(self._held)
            self._held.append(value)
            text, parts = self._parts(value)
            self._say(f"{text} {len(parts)}")
            self._held.extend(parts)
            stack.extend(reversed(parts))

    def _say(self, text: str) -> None:
        self._digest.update(f"{text}\n".encode("utf-8", "backslashreplace"))

    def _parts(self, value: Any) -> _Parts:
        """Say what an object is, and of what it is made."""
        kind = type(value)
        name = f"{kind.__module__}.{kind.__qualname__}"
        torch = sys.modules.get("torch")
        if isinstance(value, np.ndarray | np.generic):
            return f"{name} {value.dtype} {value.shape}", [value.tolist() if value.dtype == object else value.tobytes()]
        if torch is not None and isinstance(value, torch.Tensor):
            return f"{name} {value.dtype} {tuple(value.shape)}", [_bytes(torch, value)]
        if torch is not None and isinstance(value, torch.nn.Module):
            return name, self._of_module(value)
        if isinstance(value, FunctionType):
            return self._of_function(value)
        if isinstance(value, type):
            return self._of_class(value, None)
        if isinstance(value, MethodType):
            return name, [value.__func__, value.__self__]
        if isinstance(value, functools.partial):
            return name, [value.func, value.args, value.keywords]
        if isinstance(value, staticmethod | classmethod):
            return name, [value.__func__]
        if isinstance(value, property):
            return name, [value.fget]
        if isinstance(value, ModuleType):
            file = getattr(value, "__file__", None)
            self._files |= {file} if isinstance(file, str) and file.endswith(".py") and is_own(file) else set()
            return f"module {value.__name__}", []
        if kind.__module__.split(".")[0] in OURS:
            return name, [vars(value)] if is_dataclass(value) else []
        if isinstance(value, Mapping):
            return name, [part for pair in value.items() for part in pair]
        if isinstance(value, set | frozenset):
            return name, sorted(value, key=repr)
        if isinstance(value, list | tuple):
            return name, list(value)
        return self._of_object(value, name)

    def _of_object(self, value: Any, name: str) -> _Parts:
        own = _file_of(type(value)) is not None
        if own or name.split(".")[0] not in {*sys.stdlib_module_names, *OURS, "torch"}:
            held = getattr(value, "__dict__", None) or _plain(value)
            return name, [type(value), _slots(value), held] if own else [held]
        return name, [_plain(value), getattr(value, "__dict__", {}).get("__wrapped__")]

    def _of_module(self, module: Any) -> list[object]:
        """Return what a module computes with besides its weights."""
        kind, held = type(module), vars(module)
        every = _of_every_module()
        hidden = {name: held["_buffers"][name] for name in sorted(held.get("_non_persistent_buffers_set", ()))}
        if kind not in self._kinds:
            found = self._of_class(kind, "forward")[1] if _file_of(kind) is not None else []
            self._kinds[kind] = found, {*every, "forward", *_written_by(found)}
        methods, out = self._kinds[kind]
        rest = {name: value for name, value in held.items() if name not in out}
        hooks = {name: list(held[name].values()) for name in every if name.endswith("_hooks") and held.get(name)}
        return [hooks, rest, hidden, dict(module._modules), held.get("forward"), *methods]

    def _of_function(self, function: FunctionType) -> _Parts:
        if (file := _file_of(function)) is None:
            return f"function {function.__module__}.{function.__qualname__}", []
        self._files.add(file)
        named = {name for code in _codes(function.__code__) for name in code.co_names}
        world = {name: function.__globals__[name] for name in sorted(named) if name in function.__globals__}
        cells = [_content(cell) for cell in function.__closure__ or ()]
        return f"function {_text(function.__code__)}", [
            *(function.__defaults__, function.__kwdefaults__, cells, world, vars(function))
        ]

    def _of_class(self, kind: type, entry: str | None) -> _Parts:
        """Return a person's class with its methods, those alone that lead from an entry where there is one."""
        name = f"class {kind.__module__}.{kind.__qualname__}"
        own = {one: file for one in kind.__mro__ if (file := _file_of(one)) is not None}
        self._files.update(own.values())
        known: dict[str, list[object]] = {}
        for key, value in (pair for one in own for pair in vars(one).items()):
            if not _IS_PYTHONS.fullmatch(key) or isinstance(value, FunctionType):
                known.setdefault(key, []).append(value)  # a method may call the one that it stands for
        wanted = known if entry is None else _led_to(known, entry)
        return name, [part for key in wanted for part in (key, *known[key])]


def _led_to(known: Mapping[str, Iterable[object]], entry: str) -> Iterator[str]:
    """Yield the attributes of a class that are named on the way from one of its methods."""
    found, left = {entry}, [entry]
    while left:
        name = left.pop()
        if name not in known:
            continue
        yield name
        functions = (getattr(one, "__func__", None) or getattr(one, "fget", None) or one for one in known[name])
        codes = (code for one in functions if isinstance(code := getattr(one, "__code__", None), CodeType))
        new = sorted({one for code in codes for part in _codes(code) for one in part.co_names} - found)
        found.update(new)
        left.extend(new)


def _written_by(methods: Iterable[object]) -> set[str]:
    """Return the attributes that methods set: what a pass leaves behind is none of what it computes with."""
    codes = (code for one in methods if isinstance(code := getattr(one, "__code__", None), CodeType))
    steps = (step for code in codes for part in _codes(code) for step in dis.get_instructions(part))
    return {str(step.argval) for step in steps if step.opname == "STORE_ATTR"}


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield some code, and that of what is defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _text(code: CodeType) -> str:
    """Return what some code does."""
    constants = [
        sorted(map(repr, one)) if isinstance(one, frozenset) else one
        for one in code.co_consts
        if not isinstance(one, CodeType)
    ]
    own = f"{code.co_code.hex()} {constants!r} {code.co_names} {code.co_freevars}"
    return " ".join([own, *(_text(one) for one in code.co_consts if isinstance(one, CodeType))])


def _content(cell: Any) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


@functools.cache
def _of_every_module() -> tuple[str, ...]:
    """Return the attributes that torch gives a module: weights, hooks, and what says nothing of what it computes."""
    return tuple(vars(sys.modules["torch"].nn.Module()))


def _slots(value: object) -> dict[str, object]:
    """Return what an object holds in the places that its class has for it."""
    places = {name: one for kind in type(value).__mro__ for name, one in vars(kind).items()}
    names = [name for name, one in places.items() if isinstance(one, MemberDescriptorType) and hasattr(value, name)]
    return {name: getattr(value, name) for name in names}


def _plain(value: object) -> str:
    """Return how an object writes itself, without where it lies in memory."""
    return _ADDRESS.sub("", repr(value))


def _bytes(torch: Any, value: Any) -> bytes:
    plain = value.detach()
    if value.is_quantized:
        plain = plain.dequantize()
    elif value.layout != torch.strided:
        plain = plain.to_dense()
    plain = plain.cpu().contiguous().reshape(-1)
    return bytes(plain.view(torch.uint8).numpy().tobytes()) if plain.numel() else b""
