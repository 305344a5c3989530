"""Work on many inputs piece by piece; where a GPU's memory runs out, on half as many at a time from then on."""

from collections.abc import Callable, Iterator
from typing import TypeVar

import torch

from idc_core.errors import DataError

_T = TypeVar("_T")


class Pieces:
    """Cuts inputs into pieces of a size that memory allows; what it has learnt of that holds for the next inputs too.

    `size` is the number of inputs to begin with.
    """

    def __init__(self, size: int) -> None:
        self.size = size

    def __call__(self, count: int, work: Callable[[slice], _T]) -> Iterator[tuple[slice, _T]]:
        """Do some work on the rows of `count` inputs, a slice at a time; yield each slice with its result.

        Raises `DataError` where memory does not suffice for a single input.
        """
        begin = 0
        while begin < count:
            rows = slice(begin, min(begin + self.size, count))
            try:
                result = work(rows)
            except torch.OutOfMemoryError as error:
                tried = rows.stop - begin
                if tried == 1:
                    raise DataError(
                        f"The device's memory does not suffice for one input ({str(error).splitlines()[0]}). Choose "
                        "another device, smaller inputs, or fewer layers."
                    ) from error
                self.size = tried // 2
                continue
            yield rows, result
            del result  # the next piece needs the memory
            begin = rows.stop
