"""What stands for tensors of a network after captures, and after in-place operations that ran out of place."""

from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from idc_core.lrp.captures import mark, place_of
from idc_core.lrp.unseen import cannot_pass


@dataclass(frozen=True, eq=False)
class _View:
    """Where a tensor lies in another, which is contiguous."""

    of: Tensor  # held, so that no other takes its place
    base: Tensor
    stride: tuple[int, ...]
    start: int

    @classmethod
    def of_base(cls, tensor: Tensor) -> Self | None:
        """Return where a tensor lies in its base; None where it has none, or one that is not contiguous."""
        base = tensor._base
        if base is None or not base.is_contiguous():
            return None
        return cls(tensor, base, tensor.stride(), int(tensor.storage_offset() - base.storage_offset()))


class Substitutes:
    """The tensors that stand for others in one pass; those they stand for are held, so that none takes their place."""

    def __init__(self) -> None:
        self.current: dict[int, tuple[Tensor, Tensor]] = {}
        self.rewritten: set[int | None] = set()  # addresses of what was written into out of place
        self._views: dict[int, _View] = {}  # by what stands for a view that was written into, and has no base itself

    def put(self, tensor: Tensor, substitute: Tensor) -> None:
        """Let another tensor stand for this one."""
        self.current[id(tensor)] = (tensor, substitute)

    def now(self, tensor: Tensor) -> Tensor:
        """Return what stands for a tensor."""
        while id(tensor) in self.current:
            tensor = self.current[id(tensor)][1]
        return tensor

    def write(self, target: Tensor, result: Tensor) -> None:
        """Let the result of an in-place operation stand for what it wrote into, and be seen in its base."""
        self.put(target, result)
        self.rewritten.add(place_of(target))
        view = self._views.get(id(target)) or _View.of_base(target)
        if view is None:
            return
        self._views[id(result)] = replace(view, of=result)  # what is written through it next
        base = self.now(view.base)
        places = torch.arange(base.numel(), device=base.device).as_strided(target.size(), view.stride, view.start)
        whole = base.reshape(-1).index_copy(0, places.reshape(-1), result.to(base.dtype).reshape(-1))
        # A copy, so that it is itself the base of what looks at it next.
        self.write(base, mark(whole.reshape(base.shape).clone()))

    def check_views(self, tensors: list[Tensor], place: str) -> None:
        """Refuse a tensor that shares its numbers with one that has been written into out of place."""
        if any(place_of(tensor) in self.rewritten for tensor in tensors if tensor.layout is torch.strided):
            raise cannot_pass("a tensor of which another view was changed in place", place)
