"""What one session may ask of this server: limits in the owner's config file, none by default."""

from __future__ import annotations

from idc_core.base.config import config
from idc_core.errors import SettingError


def most(name: str) -> int | None:
    """Return a limit by its name in the config file; None where the owner sets none."""
    limit: int | None = getattr(config(), name)
    return limit


def named(name: str) -> str:
    """Say where a limit is set, for a sentence."""
    return f"{name} in the section limits of this server's config file"


def check(name: str, asked: int, what: str, instead: str) -> None:
    """Refuse what is above a limit: `what` is the beginning of a sentence, `instead` one on what to do.

    Raises
    ------
    SettingError
        With the name of the limit.
    """
    allowed = most(name)
    if allowed is not None and asked > allowed:
        raise SettingError(f"{what}; at most {allowed:,} are allowed ({named(name)}). {instead}")
