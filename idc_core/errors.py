"""The one error family of the engine: what was expected, what came, where, and what to do about it."""

from collections.abc import Iterator
from contextlib import contextmanager


class IdcError(Exception):
    """Any mistake the engine can explain to a person; its message is a complete sentence."""


class DataError(IdcError):
    """A data set is missing, damaged, or not of the form it claims."""


class ModelError(IdcError):
    """A network, its weights or one of its layers is missing or not of the expected form."""


class SettingError(IdcError, ValueError):
    """A parameter is outside what the method defines."""


class SetupError(IdcError):
    """A setup file cannot be read, or registers nothing."""


class UnsupportedOperationError(IdcError):
    """The network uses an operation through which relevance cannot be propagated."""


class EngineError(IdcError):
    """An engine has lost its cluster, or its workers end again and again."""


class CancelledError(IdcError):
    """The caller's progress callback asked the work to stop."""


@contextmanager
def of_a_network() -> Iterator[None]:
    """Raise what is wrong with a file that is read in this block, or in the decorated function, as a `ModelError`."""
    try:
        yield
    except DataError as error:
        raise ModelError(str(error)) from error


@contextmanager
def needing(extra: str, what: str) -> Iterator[None]:
    """Import packages of an extra of idc-studio; SettingError where they are not installed, naming what needs them."""
    try:
        yield
    except ImportError as error:
        raise SettingError(
            f'{what} needs {error.name}, which is not installed: pip install "idc-studio[{extra}]", in a clone '
            f"pip install -r requirements{'-cluster' if extra == 'cluster' else ''}.txt."
        ) from error
