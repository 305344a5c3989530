"""Numbers as people write them in tables: decimal commas, and signs between thousands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from idc_core.datasets.files.columns import is_nothing

if TYPE_CHECKING:
    import pyarrow as pa

_POWER = r"([eE][-+]?\d+)?"
_PLAIN = rf"[-+]?(\d+(\.\d*)?|\.\d+){_POWER}"
_WHOLE = r"[-+]?\d+"
_COMMA = rf"[-+]?(\d{{1,3}}(\.\d{{3}})+|\d+)?,\d+{_POWER}"
"""A number with a decimal comma, whose thousands may have points."""
_THOUSANDS = r"[-+]?\d{1,3}(,\d{3})+(\.\d*)?"
_APART = r"[-+]?\d{1,3}([ \x{a0}\x{202f}\x{2009}'\x{2019}]\d{3})+([.,]\d+)?"
"""A number whose thousands stand apart by a space or an apostrophe."""
_POINTS = r"[-+]?\d{1,3}(\.\d{3})+"

_SIGN = r"[$€£¥₹%]|USD|EUR|GBP|CHF"
_MINUS = "\u2212"
_DRESSED = rf"^\s*=?[\"']|{_MINUS}|{_SIGN}"
_AROUND = (
    rf"^\s*=?[\"']?(?P<minus>[-+{_MINUS}]?)\s*(?P<before>{_SIGN}|)\s*"
    rf"(?P<number>[-+{_MINUS}]?(?:\d(?:[\d.,'\x{{2019}} \x{{a0}}\x{{202f}}\x{{2009}}]*[\d.,])?|[.,]\d+)"
    r"(?:[eE][-+]?\d+)?)"
    rf"\s*(?P<after>{_SIGN}|)[\"']?\s*$"
)
"""A number with its currency or a percent sign, or in quotation marks that are no part of the table's own."""

_DECIMAL, _GROUPED, _SPACED = "decimal commas", "commas between thousands", "signs between thousands"


def with_plain_numbers(table: pa.Table, sign: str) -> tuple[pa.Table, tuple[str, ...]]:
    """Return a table of texts whose numbers Python would read, and what they had, each in a few words.

    A comma alone, as in "1,234", is a decimal one, but where commas stand between the columns, too.
    """
    ways = {_GROUPED: (_THOUSANDS, _PLAIN, ","), _DECIMAL: (_COMMA, _WHOLE, ".")}
    order = (_GROUPED, _DECIMAL) if sign == "," else (_DECIMAL, _GROUPED)
    found: list[str] = []
    for name in table.column_names:
        table = _bare(table, name, found)
        for what in order:
            table = _mended(table, name, *ways[what], what, found)
        table = _mended(
            table, name, _APART, f"{_PLAIN}|{_COMMA}", r"[ \x{a0}\x{202f}\x{2009}'\x{2019}]", _SPACED, found
        )
    if _DECIMAL in found:  # a column of whole numbers alone does not tell that its points are no decimal ones
        for name in table.column_names:
            table = _mended(table, name, _POINTS, _WHOLE, ".", _SPACED, found)
    return table, tuple(dict.fromkeys(found))


def _bare(table: pa.Table, name: str, found: list[str]) -> pa.Table:
    """Take off what stands around the numbers of a column, where it is the same in all of them."""
    import pyarrow.compute as pc

    column = table.column(name)
    if not pc.any(pc.match_substring_regex(column, _DRESSED)).as_py():
        return table
    parts, nothing = pc.extract_regex(column, _AROUND), is_nothing(column)
    if not pc.all(pc.or_(pc.is_valid(parts), nothing)).as_py():
        return table
    around = [pc.struct_field(parts.filter(pc.is_valid(parts)), side) for side in ("before", "after")]
    signs = pc.unique(pc.binary_join_element_wise(*around, "")).to_pylist()
    if len(signs) != 1:
        return table
    found.append(f"{signs[0]} beside numbers left out" if signs[0] else "marks in numbers left out")
    number = pc.binary_join_element_wise(pc.struct_field(parts, "minus"), pc.struct_field(parts, "number"), "")
    plain = pc.if_else(nothing, column, pc.utf8_trim_whitespace(pc.replace_substring(number, _MINUS, "-")))
    return table.set_column(table.column_names.index(name), name, plain)


def _mended(table: pa.Table, name: str, form: str, others: str, between: str, what: str, found: list[str]) -> pa.Table:
    """Take the signs between thousands out of a column where all of it is of this form or of others, or nothing."""
    import pyarrow.compute as pc

    column = table.column(name)
    of_form = pc.match_substring_regex(column, rf"^\s*({form})\s*$")
    if not pc.any(of_form).as_py():
        return table
    other = pc.or_(pc.match_substring_regex(column, rf"^\s*({others})\s*$"), is_nothing(column))
    if not pc.all(pc.or_(of_form, other)).as_py():
        return table
    found.append(what)
    literal = between in ",."
    plain = (pc.replace_substring if literal else pc.replace_substring_regex)(column, between, "")
    plain = plain if between == "," else pc.replace_substring(plain, ",", ".")
    return table.set_column(table.column_names.index(name), name, plain)
