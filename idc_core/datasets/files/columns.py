"""Columns of a table as arrays: numbers, rows of numbers, texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from idc_core.errors import DataError
from idc_core.guarded import Budget

if TYPE_CHECKING:
    import pyarrow as pa

_FEW = 0.1
"""The part of a column's cells that may be words where the others are numbers."""
# A text of one letter in an array, in a dictionary and as an object.
_TEXT, _LETTER = 150, 4

NOTHING = (
    "",
    *["na", "n/a", "n.a.", "<na>", "nan", "-nan", "null", "nil", "none", "missing", "?", "-", "--", ".", "*", "\\n"],
    *["#n/a", "#na", "#div/0!", "#value!", "#ref!", "#num!", "#name?", "#null!", "1.#qnan", "-1.#ind", "1.#ind"],
)
"""What people and programs write into cells that are empty."""

_MONTH = r"[A-Za-z]{3,9}"
_DAY = (
    r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{4}/\d{1,2}/\d{1,2}|"
    rf"\d{{1,2}}[- ]{_MONTH}[- ,]+\d{{2,4}}|{_MONTH} \d{{1,2}}[,;]? \d{{4}}"
)
_TIME = r"\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?( ?[AaPp][Mm])?"
_DATE = rf"\s*(({_DAY})([ T]\d{{1,2}}:\d{{2}}.*)?|\d{{8}}T\d{{4,6}}Z?|{_TIME})\s*"
_CELL = r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"
_NUMBER = rf"(?i)^\s*({_CELL}|[-+]?inf(inity)?)\s*$"
_CALLED = r"^\s*(np\.|numpy\.)?(array|tensor)\(|,\s*dtype=[\w.]+\s*\)\s*$"
"""What stands around a list of numbers as NumPy and PyTorch print it."""
_PART = rf"({_CELL}|[-+]?(nan|inf))"
_ROW = rf"^[\[(\s]*{_PART}(\s*,\s*{_PART}|\s+{_PART})+[\])\s]*$|^\s*\[\s*{_PART}\s*\]\s*$"
"""Several numbers in one cell, or one in brackets."""
_YES_AND_NO = (("yes", "no"), ("y", "n"), ("t", "f"))
_TRUTH = {"true": True, "false": False}


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column whose values are listed once and numbered as those values."""
    import pyarrow as pa

    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def value_type(column: pa.ChunkedArray) -> pa.DataType:
    """Return the type of a column's values."""
    import pyarrow as pa

    return column.type.value_type if pa.types.is_dictionary(column.type) else column.type


def is_flat(column: pa.ChunkedArray) -> bool:
    """Whether a column holds single values, not lists or records."""
    import pyarrow as pa

    return not pa.types.is_nested(value_type(column))


def holds_texts(column: pa.ChunkedArray) -> bool:
    """Whether a column holds texts, which may be numbers as they are written."""
    import pyarrow as pa

    kind = value_type(column)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_text(column: pa.ChunkedArray) -> bool:
    """Whether a column holds texts, that are not all numbers."""
    return holds_texts(column) and numbers_of(column) is None


def is_padded(column: pa.ChunkedArray) -> bool:
    """Whether a column holds whole numbers with zeros before them, as names have: "007"."""
    import pyarrow.compute as pc

    if not holds_texts(column):
        return False
    return bool(pc.any(pc.match_substring_regex(_plain(column), r"^\s*0\d+\s*$")).as_py())


def numbers_of(column: pa.ChunkedArray) -> NDArray[np.generic] | None:
    """Return a column as numbers or truth values (n,), also where it has them as text; None where it has others."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = value_type(column)
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _array(column)
    if pa.types.is_decimal(kind):
        return _array(column.cast(pa.float64()))
    if not holds_texts(column) or not len(column):
        return None
    first = column[0].as_py()
    if first is not None and first.strip() and not _reads(first) and first.strip().lower() not in _TRUTH:
        return None  # most texts are known by the first one
    written = pc.utf8_trim_whitespace(_plain(column))
    if first is not None and first.strip().lower() in _TRUTH:
        return _truth_values(written)
    for as_type in (pa.int64(), pa.float64()):
        try:
            return _array(written.cast(as_type))
        except pa.ArrowInvalid:
            continue
    return None


def _truth_values(written: pa.ChunkedArray) -> NDArray[np.generic] | None:
    """Return True and False as people write them; None where there is anything else."""
    import pyarrow.compute as pc

    low = pc.utf8_lower(written)
    known = set(pc.unique(low).to_pylist())
    return low.to_numpy() == "true" if known <= set(_TRUTH) else None


def with_answers(tables: Mapping[str, pa.Table], names: Sequence[str]) -> tuple[dict[str, pa.Table], list[str]]:
    """Return tables with truth values where columns say yes and no, in all tables together, and these columns' names.

    There are nulls where a column says nothing.
    """
    made, answered = dict(tables), []
    for name in names:
        answers = _answers_of([table.column(name) for table in tables.values()])
        if answers is not None:
            answered.append(name)
            for key, values in zip(tables, answers, strict=True):
                made[key] = made[key].set_column(made[key].column_names.index(name), name, values)
    return made, answered


def _answers_of(columns: Sequence[pa.ChunkedArray]) -> list[pa.ChunkedArray] | None:
    """Return the columns of one name as truth values; None where they do not say yes and no."""
    import pyarrow.compute as pc

    lows, held = [], set()
    for column in columns:
        if not holds_texts(column):
            return None
        first = str(column[0].as_py() or "").strip().lower() if len(column) else ""
        if first not in NOTHING and not any(first in pair for pair in _YES_AND_NO):
            return None  # most texts are known by the first one
        plain = _plain(column)
        lows.append(pc.if_else(is_nothing(plain), None, pc.utf8_lower(pc.utf8_trim_whitespace(plain))))
        held |= set(pc.unique(lows[-1]).to_pylist()) - {None}
    yes = next((yes for yes, no in _YES_AND_NO if held == {yes, no}), None)
    return None if yes is None else [pc.equal(low, yes) for low in lows]


def is_nothing(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return which texts of a column stand for nothing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    low = pc.utf8_lower(pc.utf8_trim_whitespace(column))
    return pc.or_(pc.is_null(low), pc.is_in(low, pa.array(NOTHING)))


def gaps_of(column: pa.ChunkedArray, is_input: bool = True) -> NDArray[np.bool_]:
    """Return where a column has no value (n,): nulls, texts that stand for nothing, numbers not finite in 32 bits.

    In a column of numbers that is an input, a few words count as none too; one of words has none but nulls and blanks.
    """
    import pyarrow.compute as pc

    empty: NDArray[np.bool_] = np.array(pc.is_null(column, nan_is_null=True).to_numpy())
    if holds_texts(column):
        plain = _plain(column)
        nothing: NDArray[np.bool_] = np.array(is_nothing(plain).to_numpy())
        values = numbers_of(column.filter(~nothing))
        if values is None:
            words = ~(nothing | pc.fill_null(pc.match_substring_regex(plain, _NUMBER), False).to_numpy())
            if not is_input or nothing.all() or words.sum() > _FEW * len(column):
                blank = pc.fill_null(pc.equal(pc.utf8_trim_whitespace(plain), ""), True)
                return np.array(blank.to_numpy())
            nothing |= words
            values = numbers_of(column.filter(~nothing))
        empty = nothing
    else:
        values = numbers_of(column.filter(~empty))
    if values is not None and values.dtype.kind == "f":
        with np.errstate(over="ignore"):
            empty[~empty] = ~np.isfinite(values.astype(np.float32))
    return empty


def said_as_empty(column: pa.ChunkedArray, gaps: NDArray[np.bool_]) -> str:
    """Say which gap of a column is the first that is not empty, but an infinite number or a word; "" for none."""
    import pyarrow as pa

    texts = _plain(column).filter(gaps).cast(pa.string())
    held = np.flatnonzero(~is_nothing(texts).to_numpy())
    if not len(held):
        return ""
    return f"; row {np.flatnonzero(gaps)[held[0]] + 1:,} has {texts[int(held[0])].as_py()[:60]!a}, which counts as none"


def filled(column: pa.ChunkedArray, gaps: NDArray[np.bool_]) -> tuple[pa.ChunkedArray, float]:
    """Return a column of numbers with their mean in place of its gaps, and that mean."""
    import pyarrow as pa

    values = np.zeros(len(column), np.float64)
    values[~gaps] = numbers_of(column.filter(~gaps))
    values[gaps] = mean = float(values[~gaps].mean())
    return pa.chunked_array([values]), mean


def is_date(column: pa.ChunkedArray) -> bool:
    """Whether a column holds dates, or points in time."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_temporal(value_type(column)):
        return True
    if not holds_texts(column) or not len(column):
        return False
    column = _plain(column)
    return bool(pc.all(pc.or_(pc.match_substring_regex(column, f"^{_DATE}$"), is_nothing(column))).as_py()) and not (
        is_nothing(column).to_numpy().all()
    )


def distinct(column: pa.ChunkedArray) -> int:
    """Return how many different values a column has."""
    import pyarrow.compute as pc

    return int(pc.count_distinct(_plain(column)).as_py())


def _reads(text: str) -> bool:
    try:
        float(text.replace("_", "x"))  # Python reads 1_000 and other scripts' digits, tables do not
    except ValueError:
        return False
    return text.isascii()


def first_other(column: pa.ChunkedArray) -> str:
    """Say which value of a column is the first that is no number, as a part of a sentence."""
    if not holds_texts(column):
        return f" but {column.type}"[:100]
    texts = (value.as_py() for chunk in column.chunks for value in chunk)
    unread = next(((row, text) for row, text in enumerate(texts) if text is None or not _reads(text)), None)
    if unread is None:
        return ""
    row, text = unread[0] + 1, unread[1] or ""
    is_cut = text.lstrip()[:1] in ("[", "(") and "..." in text
    cut = ", whose numbers at the dots were lost when it was written" * is_cut
    return f" (row {row:,} has {text[:60]!a}{cut})"


def _array(column: pa.ChunkedArray) -> NDArray[np.generic]:
    values: NDArray[np.generic] = column.to_numpy()
    return values.astype(np.float32) if values.dtype == np.float16 else values


def is_rows(column: pa.ChunkedArray) -> bool:
    """Whether a column holds lists, or texts that are lists of numbers."""
    return _is_list(column.type) or (is_text(column) and _are_written_rows(column))


def _is_list(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _are_written_rows(column: pa.ChunkedArray) -> bool:
    import pyarrow.compute as pc

    bare = pc.replace_substring_regex(_plain(column), _CALLED, "")
    return len(column) > 0 and bool(pc.all(pc.match_substring_regex(bare, _ROW)).as_py())


def rows_of(column: pa.ChunkedArray, where: str, budget: Budget) -> NDArray[np.generic] | None:
    """Return a column of lists of numbers, all equally long, as (n, length); None where it holds no lists.

    Lists of lists make more axes, and what is missing in one is NaN. A text such as "[0.5, 1]" or "12 8 255", as
    tables have them in a cell, is a list.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not is_rows(column):
        return None
    if is_text(column):
        bare = pc.utf8_trim(pc.replace_substring_regex(_plain(column), _CALLED, ""), "[]() \n\t")
        column = pc.split_pattern_regex(bare, r"\s*,\s*|\s+").cast(pa.list_(pa.float64()))
        budget.take(2 * column.nbytes, "its lists")
    budget.take(column.nbytes * (column.num_chunks > 1), "its lists side by side")
    flat, shape = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks(), [len(column)]
    while _is_list(flat.type):
        lengths = pc.unique(pc.list_value_length(flat)).drop_null().to_pylist() or [0]
        if len(lengths) != 1 or flat.null_count or not lengths[0]:
            what = f"from {min(lengths)} to {max(lengths)} values"
            raise DataError(f"{where} has lists {what}; expected numbers, as many in every row.")
        flat, shape = flat.flatten(), [*shape, lengths[0]]
    if not _is_number(flat.type):
        raise DataError(f"{where} has lists of {flat.type}; expected numbers, as many in every row.")
    budget.take(2 * flat.nbytes, "its lists")
    flat = flat.cast(pa.float64()) if flat.null_count else flat
    return np.asarray(flat.to_numpy(zero_copy_only=False)).reshape(shape)


def _is_number(kind: object) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def number_columns(
    table: pa.Table,
    names: Sequence[str],
    where: str,
    budget: Budget,
    kind: type[np.floating] = np.float32,
    expected: str = "numbers, or a single column of texts",
) -> NDArray[np.floating]:
    """Return columns side by side as numbers (n, columns); DataError where one has none, or holds something else."""
    made = np.empty((len(table), len(names)), kind)
    budget.take(made.nbytes, "its numbers side by side")
    for place, name in enumerate(names):
        column = table.column(name)
        check_whole(column, f"{where}, column {name!a}")
        values = numbers_of(column)
        if values is None or values.ndim > 1:
            raise DataError(f"{where}, column {name!a} is not all numbers{first_other(column)}; expected {expected}.")
        made[:, place] = values
    return made


def values_of(column: pa.ChunkedArray, where: str, budget: Budget) -> NDArray[np.generic] | None:
    """Return a column as what it is: numbers (n,), rows of them, or texts; None for others."""
    check_whole(column, where)
    values = numbers_of(column)
    if values is not None:
        budget.take(values.nbytes, "its numbers")
        return values
    rows = rows_of(column, where, budget)
    return texts_of(column, where, budget) if rows is None and is_text(column) else rows


def labels_of(column: pa.ChunkedArray, where: str, budget: Budget) -> NDArray[np.generic]:
    """Return a column of classes or quantities: as `values_of`, but whole numbers with zeros before them are names."""
    labels = (texts_of if is_padded(column) else values_of)(column, where, budget)
    if labels is None:
        raise DataError(f"{where} has {column.type}; expected classes or numbers.")
    return labels


def texts_of(column: pa.ChunkedArray, where: str, budget: Budget) -> NDArray[np.generic]:
    """Return a column of texts as an array of them; a text that occurs often is held once, but counted each time."""
    check_whole(column, where)
    budget.take(_TEXT * len(column), "its texts")
    texts = np.empty(len(column), object)
    kept: dict[str, str] = {}
    place = 0
    for chunk in column.chunks:
        for value in chunk:
            text = value.as_py()
            budget.take(_LETTER * len(text), "its texts")
            texts[place] = kept.setdefault(text, text)
            place += 1
    return texts


def check_whole(column: pa.ChunkedArray, where: str) -> None:
    """Raise `DataError` where a value is missing."""
    import pyarrow.compute as pc

    if column.null_count:
        row = int(np.flatnonzero(pc.is_null(column).to_numpy())[0])
        raise DataError(f"{where} has no value in row {row + 1:,} ({column.null_count:,} missing); fill it in.")
