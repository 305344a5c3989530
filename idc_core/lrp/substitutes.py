"""What stands for tensors of a network after captures, and after in-place operations that ran out of place."""

from dataclasses import dataclass

import torch
from torch import Tensor

from idc_core.lrp.captures import in_full, mark, place_of
from idc_core.lrp.joining import follow_join
from idc_core.lrp.operations import depends
from idc_core.lrp.rules import RelevanceSettings
from idc_core.lrp.unseen import cannot_pass


def _base(tensor: Tensor) -> Tensor:
    """Return the tensor that this one is a view of, or itself."""
    return tensor if tensor._base is None else tensor._base


def _is_dense(tensor: Tensor) -> bool:
    """Return whether a tensor's numbers lie together in memory, in whatever order of axes, each in a place of its own.

    The others are parts of something, or repeat their numbers.
    """
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


@dataclass(eq=False)
class _Memory:
    """The numbers that a network wrote into, as they are now, in the order in which they lay."""

    now: Tensor
    size: torch.Size
    stride: tuple[int, ...]
    owners: list[Tensor]  # what held them one after the other; kept, so that no other takes their place

    def seen(self, tensor: Tensor) -> Tensor:
        """Return what a tensor that lies here looks at now."""
        start = int(tensor.storage_offset() - _owner_start(tensor))
        if (tensor.size(), tensor.stride(), start) == (self.size, self.stride, 0):
            return self.now
        with torch.inference_mode(False), torch.enable_grad():  # whatever the network does without gradients
            return mark(self.now.as_strided(tensor.size(), tensor.stride(), self.now.storage_offset() + start))


def _owner_start(tensor: Tensor) -> int:
    return int(_base(tensor).storage_offset())


class Substitutes:
    """The tensors that stand for others in one pass; those they stand for are held, so that none takes their place.

    An in-place operation gives a new tensor. What looks at the memory that it would have written into, through whatever
    view and made before or after, looks at the new one from then on, at the same places.
    """

    def __init__(self) -> None:
        self.current: dict[int, tuple[Tensor, Tensor]] = {}
        self._memories: dict[int | None, _Memory] = {}  # by address, of what was written into out of place
        self._others: dict[int | None, list[Tensor]] = {}  # by address, what may share its numbers in the network

    def __bool__(self) -> bool:
        return bool(self.current or self._memories)

    def put(self, tensor: Tensor, substitute: Tensor) -> None:
        """Let another tensor stand for this one."""
        self.current[id(tensor)] = (tensor, substitute)

    def may_share(self, one: Tensor, other: Tensor) -> None:
        """Note two tensors of which it is not known whether they share memory where the network runs alone."""
        self._others.setdefault(place_of(one), []).append(other)
        self._others.setdefault(place_of(other), []).append(one)

    def lose(self, tensor: Tensor) -> None:
        """Refuse what lies in a tensor's memory from now on, unless another tensor stands for it."""
        self._memories[place_of(tensor)] = _Memory(tensor.new_empty(0), tensor.size(), tensor.stride(), [])

    def standing(self, tensor: Tensor) -> Tensor:
        """Return what stands for a tensor, whatever was written into it."""
        while id(tensor) in self.current:
            tensor = self.current[id(tensor)][1]
        return tensor

    def now(self, tensor: Tensor, place: str = "") -> Tensor:
        """Return what stands for a tensor, as it is now.

        Refuses what shares its numbers with a tensor that was written into in a way that cannot be followed, such as
        ``detach``; `place` is the module that uses it.
        """
        tensor = self.standing(tensor)
        memory = self._memories.get(place_of(tensor)) if self._memories else None
        if memory is None or place_of(tensor) == place_of(memory.now):
            return tensor
        if not any(_base(tensor) is owner for owner in memory.owners) or tensor.dtype != memory.owners[0].dtype:
            raise cannot_pass("a tensor of which another view was changed in place", place)
        return memory.seen(tensor)

    def write(self, settings: RelevanceSettings | None, target: Tensor, result: Tensor, place: str) -> Tensor:
        """Let the result of an in-place operation be what is seen at the places of its target, and return it there.

        Without settings it looks at the same numbers in another way, as where it has another shape.
        """
        if result is target:
            return target
        if settings is None or result.shape != target.shape:
            self.put(target, result)
            return result
        for other in self._others.get(place_of(target), ()):
            self.lose(other)
        owner = _base(target)
        memory = self._memories.get(place_of(target))
        if memory is None:
            if not _is_dense(owner):
                if target is not owner:
                    raise cannot_pass("a view of a part of a tensor that is changed in place", place)
                self.lose(target)
                self.put(target, result)
                return result
            memory = _Memory(owner, owner.size(), owner.stride(), [owner])
        whole, start = memory.now, int(target.storage_offset() - owner.storage_offset())
        fresh = result._base is None and result.stride() == memory.stride
        if fresh and (target.size(), target.stride(), start) == (memory.size, memory.stride, 0):
            memory.now = result
        else:
            memory.now = mark(_written(settings, whole, target, start, result))
        memory.owners.append(_base(memory.now))
        for one in (owner, memory.now):
            self._memories[place_of(one)] = memory
        return memory.seen(target)


def _written(settings: RelevanceSettings, whole: Tensor, target: Tensor, start: int, part: Tensor) -> Tensor:
    """Return a tensor with other numbers at some of its places, in the same order in memory."""
    covers = part.numel() == whole.numel()
    whole = whole.detach() if covers else whole
    whole = whole if part.dtype == whole.dtype else in_full(whole)
    size, stride, numbers = whole.size(), whole.stride(), torch.arange(whole.numel(), device=whole.device)
    # Not as_strided_scatter, whose gradient is wrong.
    places = numbers.as_strided(target.size(), target.stride(), start).flatten()

    def join(parts: tuple[Tensor, ...]) -> Tensor:
        rest = iter(parts)
        old, new = (next(rest) if depends(x) else x for x in (whole, part))
        flat = old.as_strided((old.numel(),), (1,)).index_copy(0, places, new.to(old.dtype).reshape(-1))
        return flat.as_strided(size, stride)

    watched = [x for x in (whole, part) if depends(x)]
    if len(watched) == 1 and not covers:
        return follow_join(settings, join, tuple(range(1, whole.dim())), *watched)
    return join(tuple(watched))
