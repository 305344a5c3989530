"""The file of a gate: which networks are checked, on what, and the limits; read and checked before any work."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TypeVar

from idc_core.base.parameters import shown
from idc_core.base.ranges import INPUTS, M
from idc_core.coverage.idc_settings import IdcOptions, IdcSettings
from idc_core.datasets.preparation import FOLDERS, Preparation
from idc_core.errors import DataError, IdcError, SettingError
from idc_core.gate.limits import LIMITS, Limit
from idc_core.guarded import read_toml, typed
from idc_core.lrp.explained import NAMES, PATTERN
from idc_core.models.scaling import Scaling
from idc_core.opening.files import FileOptions, open_named

_T = TypeVar("_T")

_MOST_NAME = 200

_TAKEN_OUT = {
    "faults": "the share that it predicted fell as training inputs were added, from 99 % (300) to 45 % (3,000) where "
    '32 to 35 % of the faults were found. Use kind = "new-cell" with at_most in its place, or leave it out.'
}
"""Kinds of limits that a file of before may have: why they went, and what to use."""


@dataclass(frozen=True, kw_only=True)
class Settings(IdcOptions, FileOptions):
    """One check: a network, its tests, and how they are analysed; the fields are the keys of its table in the file.

    `model` and `data` are names, or paths from the file's folder; `data` may also be a URL. `data`, `layer` and the
    limits on inputs are by default the network's own data, its default layer, and all inputs. `m` and `rule` are as in
    `idc_core.analysis.analysis.analyze`. `architecture`, `scaling`, `explain`, `output`, `class_names`, `trust`,
    `hold` and `output_layout` are for a network from a file, `preparation` for data from files.
    """

    model: str
    name: str = ""
    data: str = ""
    layer: str = ""
    limit_train: int | None = None
    limit_test: int | None = None
    m: int | None = None
    rule: str | dict[str, object] = "epsilon"
    epsilon: float | None = None
    architecture: str = ""

    def __post_init__(self) -> None:
        """Refuse what the method does not define."""
        for name in ("model", "name", "data", "layer", "architecture", "explain", "output"):
            value = getattr(self, name)
            if len(value) > _MOST_NAME or not value.isprintable():
                raise SettingError(f"{name} must be at most {_MOST_NAME} characters that can be printed")
        for limited in ("limit_train", "limit_test"):
            if getattr(self, limited) is not None:
                INPUTS.check(getattr(self, limited))
        if self.m is not None:
            M.check(self.m)
        super().__post_init__()
        _ = self.idc
        if self.explain and not re.fullmatch(PATTERN, self.explain):
            raise SettingError(f"explain must be {NAMES}, not {shown(self.explain)}")

    @property
    def idc(self) -> IdcSettings:
        """How IDC is measured."""
        return IdcSettings.of(self.rule, epsilon=self.epsilon, **self.options)

    @property
    def title(self) -> str:
        """The name that reports and baseline know the check by."""
        return self.name or " ".join(filter(None, (self.model, self.data, self.layer)))


@dataclass(frozen=True)
class Check:
    """One check of a file; `where` begins messages about it."""

    settings: Settings
    limits: tuple[Limit, ...]
    where: str

    @property
    def name(self) -> str:
        """The name that reports and baseline know it by."""
        return self.settings.title

    def enter(self, folder: Path) -> tuple[str, str]:
        """Enter what is named by a path from a folder; return the names of the network and of its tests."""
        settings = self.settings
        return open_named(settings.model, settings.data, settings, folder, settings.architecture)


@dataclass(frozen=True)
class Gate:
    """What a file says; paths in it start from its folder."""

    file: Path
    setups: tuple[Path, ...]
    baseline: Path
    checks: tuple[Check, ...]

    @property
    def folder(self) -> Path:
        """The folder that paths start from."""
        return self.file.absolute().parent


@dataclass(frozen=True, kw_only=True)
class _Top:
    check: list[dict[str, object]]
    setup: str | list[str] = field(default_factory=list)
    baseline: str = ""


def read_gate(file: Path) -> Gate:
    """Read a gate's file.

    Parameters
    ----------
    file : Path
        TOML, as docs/CHECKS.md explains it.

    Returns
    -------
    Gate

    Raises
    ------
    DataError
        If it cannot be read, or holds an unknown key, name or value: where, what came, and what was expected.
    """
    where = str(file)
    top = _fitted(read_toml(file, where), where, _Top)
    folder = file.absolute().parent
    checks = tuple(_check(plain, f"{where}, check {number}", folder) for number, plain in enumerate(top.check, start=1))
    if not checks:
        raise DataError(f"{where} has no checks: expected at least one table [[check]].")
    _check_different([check.name for check in checks], f"{where}: two checks are called", "give each a name of its own")
    setups = [top.setup] if isinstance(top.setup, str) else top.setup
    baseline = folder / (top.baseline or f"{file.stem}-baseline.json")
    return Gate(file, tuple(folder / Path(setup).expanduser() for setup in setups), baseline, checks)


@contextmanager
def named_errors(where: str) -> Iterator[None]:
    """Begin the message of a mistake with where in the file it is."""
    try:
        yield
    except IdcError as error:
        raise type(error)(f"{where}: {error}") from error


def _check(plain: dict[str, object], where: str, folder: Path) -> Check:
    tables = typed(plain.pop("limit", []), f"{where}, key limit,", list[dict[str, object]])
    settings = _fitted(plain, where, Settings)
    limits = tuple(_limit(table, f"{where}, limit {number}") for number, table in enumerate(tables, start=1))
    if not limits:
        raise DataError(f"{where} has no limits: expected at least one table [[check.limit]].")
    _check_different([limit.label for limit in limits], f"{where}: two limits are on", "give both bounds in one")
    with named_errors(where):
        if settings.scaling:
            _fitted(settings.scaling, "scaling", Scaling)
        if settings.preparation:
            settings = replace(settings, preparation=_preparation(settings.preparation, folder))
    return Check(settings, limits, where)


def _preparation(plain: dict[str, object], folder: Path) -> dict[str, object]:
    """Return a whole preparation: what is left out is as usual, not as a network expects."""
    _check_keys(plain, "preparation", Preparation)
    Preparation.from_json(dict(plain), "preparation")
    folders = {name: str(folder / str(plain[name])) for name in FOLDERS if plain.get(name)}
    return {**asdict(Preparation()), **plain, **folders}


def _limit(plain: dict[str, object], where: str) -> Limit:
    with named_errors(where):
        name = typed(plain.pop("kind", "coverage"), "kind", str)
        if name in _TAKEN_OUT and name not in LIMITS:
            raise SettingError(f"The limit {name!r} was taken out: {_TAKEN_OUT[name]}")
        kind = LIMITS[name]
    return _fitted(plain, f"{where} ({name})", kind)


def _fitted(plain: Mapping[str, object], where: str, kind: type[_T]) -> _T:
    """Return a table as an object whose fields are its keys."""
    _check_keys(plain, where, kind)
    return typed(dict(plain), where, kind)


def _check_keys(plain: Mapping[str, object], where: str, kind: type) -> None:
    """Refuse unknown and missing keys by name."""
    known = [entry for entry in fields(kind) if entry.init]
    unknown = next((key for key in plain if key not in {entry.name for entry in known}), None)
    if unknown is not None:
        own = vars(kind).get("__annotations__", ())  # before those that it inherits
        keys = ", ".join(entry.name for entry in sorted(known, key=lambda entry: entry.name not in own))
        raise DataError(f"{where} has the unknown key {shown(unknown)}; expected {keys}.")
    for entry in known:
        if entry.default is MISSING and entry.default_factory is MISSING and entry.name not in plain:
            raise DataError(f"{where} has no key {entry.name}, which is needed.")


def _check_different(names: list[str], begin: str, remedy: str) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"{begin} {shown(twice)}; {remedy}.")
