"""A person's modules: each setup file has those that it would have alone, also where others have the same names."""

from __future__ import annotations

import builtins
import os
import sys
import sysconfig
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from idc_core.base.files import SHIPPED

OURS = ("idc_core", "studio", "pages", "app")
_INSTALLED = ("site-packages", "dist-packages", "node_modules")
_NOT_OWN = tuple(
    f"{place}{os.sep}"
    for place in {
        sysconfig.get_path("stdlib"),
        sysconfig.get_path("platstdlib"),
        str(Path(__file__).resolve().parents[1]),
        *(str(SHIPPED / name) for name in OURS),
    }
)

_LOCK = threading.RLock()
_HOMES: dict[str, Home] = {}
"""What the code of a file imports, by its path: of setup files, and of the modules that they have loaded."""

_LEFT: dict[str, ModuleType] = {}
"""Modules of homes that are in `sys.modules`, where a class is looked for by its name; the last one's of each name."""

_ADDED: list[str] = []
"""What homes have added to `sys.path`."""

_entered: list[Home] = []


@cache
def is_own(file: str) -> bool:
    """Whether a file is a person's: neither this program's, nor Python's, nor installed, nor no file at all."""
    if file.startswith(("<", *_NOT_OWN)) or file == str(SHIPPED / "app.py"):
        return False
    return not set(Path(file).parts) & set(_INSTALLED)


class Home:
    """The modules that a setup file imports, where it looks for them, and the files that `began` it.

    Two projects may each have a `model.py`. So while code of the one imports, also within a function that runs later,
    `sys.modules` and `sys.path` are as in a process of its own; only what the program itself has loaded from the same
    file is shared, unless the file is read `again`.
    """

    def __init__(self, file: Path, again: bool = False) -> None:
        self.modules: dict[str, ModuleType] = {}
        self.path = [str(file.parent)]
        self.builtins = {**vars(builtins), "__import__": self._import}
        self.again = again
        self.began: set[Path] = set()
        _HOMES[str(file)] = self

    @property
    def files(self) -> set[Path]:
        """The files of its modules."""
        return {Path(file) for module in self.modules.values() if (file := getattr(module, "__file__", None))}

    @property
    def is_in_place(self) -> bool:
        """Whether `sys.modules` and `sys.path` have what it would bring."""
        ours = all(sys.modules.get(name) is module for name, module in self.modules.items())
        return ours and sys.path[: len(self.path)] == self.path

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Let what is imported in a block be its own."""
        with _LOCK:  # other threads import meanwhile
            found = {name: module for name, module in sys.modules.copy().items() if _is_own_module(name, module)}
            others = {name: module for name, module in found.items() if _LEFT.get(name) is not module}
            base = [place for place in sys.path if place not in _ADDED]
            finder = _Finder(self, {} if self.again else others)
            _exchange(found, self.modules)
            sys.path[:] = [*self.path, *base]
            sys.meta_path.insert(0, finder)
            _entered.append(self)
            try:
                yield
            finally:
                _entered.pop()
                sys.meta_path.remove(finder)
                self.modules = {
                    name: module for name, module in sys.modules.copy().items() if _is_own_module(name, module)
                }
                self.path = [place for place in sys.path if place not in base]
                self.began = self.began or self.files
                _ADDED.extend(place for place in self.path if place not in _ADDED)
                _LEFT.update(self.modules)
                _exchange(self.modules, {**_LEFT, **others})

    def _import(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] = (),
        level: int = 0,
    ) -> ModuleType:
        """Import as the statement does, for the code of its modules."""
        known = None if level else self.modules.get(name)
        if known is not None and all(hasattr(known, one) for one in fromlist or ()):
            return known if fromlist else self.modules[name.partition(".")[0]]
        loaded = None if level else sys.modules.get(name.partition(".")[0])
        if _entered[-1:] == [self] or (loaded is not None and not _is_own_module(name, loaded)):
            return builtins.__import__(name, globals, locals, fromlist, level)
        with self.entered():
            return builtins.__import__(name, globals, locals, fromlist, level)


def home_of(file: str) -> Home | None:
    """Return the home of a file's code; None of code that no setup file has loaded."""
    return _HOMES.get(file)


def at_home(file: str) -> None:
    """Let names of modules, as a pickle has them, mean those of a file's own project from now on."""
    if (home := home_of(file)) is not None and not home.is_in_place:
        with home.entered():
            pass


def _exchange(out: Mapping[str, ModuleType], into: Mapping[str, ModuleType]) -> None:
    for name in out:
        sys.modules.pop(name, None)
    sys.modules.update(into)


def _is_own_module(name: str, module: object) -> bool:
    about = getattr(module, "__dict__", {})
    if file := about.get("__file__"):
        return isinstance(file, str) and is_own(file) and name not in ("__main__", "__mp_main__")
    places = about.get("__path__")  # of a namespace; torch.classes has something else for any name that it is asked for
    return isinstance(places, Iterable) and any(isinstance(one, str) and is_own(one) for one in places)


class _Finder(MetaPathFinder):
    """Finds a home's modules, and those of the program that are from the same file."""

    def __init__(self, home: Home, others: Mapping[str, ModuleType]) -> None:
        self._home, self._others = home, others

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module where the home looks; None of what is installed, which others find."""
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or not spec.origin or not is_own(spec.origin):
            return None
        known = self._others.get(fullname)
        if known is not None and getattr(known, "__file__", None) == spec.origin:
            spec.loader = _Known(known)
        elif isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Own(fullname, spec.origin, self._home)
        return spec


class _Own(SourceFileLoader):
    """Loads a module whose own imports are the home's; from its source, as a second edit may be as long and as old."""

    def __init__(self, fullname: str, path: str, home: Home) -> None:
        super().__init__(fullname, path)
        self._home = home

    def get_code(self, fullname: str) -> CodeType:
        """Compile the source."""
        return self.source_to_code(self.get_data(self.path), self.path)

    def exec_module(self, module: ModuleType) -> None:
        """Run it."""
        _HOMES[self.path] = self._home
        module.__dict__["__builtins__"] = self._home.builtins
        super().exec_module(module)


class _Known(Loader):
    """Gives a module that is loaded."""

    def __init__(self, module: ModuleType) -> None:
        self._module, self._spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return it."""
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        """Leave it as it is."""
        module.__spec__ = self._spec
