"""What a query of the database of inspections may take: all limits in one place."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Limits of a query, of its answer, and of the process in which the database is opened.

    Attributes
    ----------
    characters, depth
        Length of a query, and brackets of it that may be open at once.
    seconds
        Time of a query, the start of its process included.
    writing_seconds
        Time to write a run, delete one, or export a view.
    waiting_seconds
        Time to wait for another process that writes into the database; less than the time of the whole.
    rows
        Rows of an answer; more are cut off.
    values, answer_bytes
        Values of an answer (those in lists count singly), and its size; a larger answer is refused.
    message
        Characters of an error message; more are cut off.
    memory, database_memory
        Bytes of the process, and of the database inside it, which does not count what single values need.
    file_bytes
        Size of a file that is written; a query can write none.
    """

    characters: int = 20_000
    depth: int = 100
    seconds: float = 10.0
    writing_seconds: float = 120.0
    waiting_seconds: float = 15.0
    rows: int = 10_000
    values: int = 1_000_000
    answer_bytes: int = 16 << 20
    message: int = 1_000
    memory: int = 900 << 20
    database_memory: int = 512_000_000
    file_bytes: int = 16 << 30


LIMITS = Limits()
"""The limits that hold."""
