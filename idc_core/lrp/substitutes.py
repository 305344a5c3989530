"""What stands for tensors of a network after captures, and after in-place operations that ran out of place."""

import torch
from torch import Tensor

from idc_core.lrp.captures import mark
from idc_core.lrp.unseen import cannot_pass


class Substitutes:
    """The tensors that stand for others in one pass; those they stand for are held, so that none takes their place."""

    def __init__(self) -> None:
        self.current: dict[int, tuple[Tensor, Tensor]] = {}
        self.rewritten: set[int] = set()  # addresses of what was written into out of place

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
        self.rewritten.add(target.untyped_storage().data_ptr())
        base = target._base
        if base is None or not base.is_contiguous():
            return
        start = target.storage_offset() - base.storage_offset()
        places = torch.arange(base.numel(), device=base.device).as_strided(target.size(), target.stride(), start)
        whole = self.now(base).reshape(-1).index_copy(0, places.reshape(-1), result.to(base.dtype).reshape(-1))
        # A copy, so that it is itself the base of what looks at it next.
        self.put(base, mark(whole.reshape(base.shape).clone()))

    def check_views(self, tensors: list[Tensor], place: str) -> None:
        """Refuse a tensor that shares its numbers with one that has been written into out of place."""
        if any(tensor.untyped_storage().data_ptr() in self.rewritten for tensor in tensors):
            raise cannot_pass("a tensor of which another view was changed in place", place)
