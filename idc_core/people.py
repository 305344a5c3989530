"""Whose something is, and who may see and change it: uploads, suites, notes, marks and runs.

Somebody is known by a word that tells nothing else of them, such as a digest. What has no owner is everybody's.
"""

from __future__ import annotations


def may_see(owner: str, asker: str | None, *, shared: bool = False) -> bool:
    """Whether somebody sees what is an owner's; an asker of None is whoever runs the program, who sees everything."""
    return asker is None or shared or owner in ("", asker)


def may_change(owner: str, asker: str | None, *, shared: bool = False) -> bool:
    """Whether somebody may change it; an asker without a name is at the server's computer, and may what is shared."""
    return asker in (None, owner) or (shared and asker == "")
