"""How convolutions and poolings move over their input: kernel, stride, dilation and padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from idc_core.models.onnx.registry import Node, room

WINDOWS = ("kernel_shape", "strides", "dilations", "pads", "auto_pad", "ceil_mode")
"""The attributes that are read here."""

_MOST_STEPS = 1 << 12
"""Most positions of a stride, a dilation, a padding or a kernel."""


@dataclass(frozen=True)
class Windows:
    """One number per spatial dimension each."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]  # before and after, for "NOTSET"
    auto: str = "NOTSET"
    ceil: bool = False
    pooling: bool = False

    @classmethod
    def of(cls, node: Node, kernel: Sequence[int] | None = None) -> Windows:
        """Read the attributes of a node; a convolution's kernel may be left to its weight."""
        given = node.get("kernel_shape")
        size = tuple(given if given is not None else kernel or node.need("kernel_shape"))
        if kernel is not None and size != tuple(kernel):
            raise node.refuse(f"a kernel_shape {list(size)} that is not its weight's {list(kernel)}")
        rank = len(size)
        pads = node.get("pads") or [0] * (2 * rank)
        stride, dilation = tuple(node.get("strides") or [1] * rank), tuple(node.get("dilations") or [1] * rank)
        if not (len(stride) == len(dilation) == rank and len(pads) == 2 * rank) or min(*stride, *dilation, *size) < 1:
            raise node.refuse("strides, dilations or pads that do not fit its kernel")
        if max(*stride, *dilation, *size, *pads) > _MOST_STEPS:
            raise node.refuse(f"strides, dilations, pads or a kernel of more than {_MOST_STEPS:,}")
        auto = node.get("auto_pad") or "NOTSET"
        if auto not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
            raise node.refuse(f"auto_pad {auto!r}")
        sides = tuple(zip(pads[:rank], pads[rank:], strict=True))
        return cls(size, stride, dilation, sides, auto, node.get("ceil_mode", 0) == 1, kernel is None)

    @property
    def reach(self) -> tuple[int, ...]:
        """How many positions a window spans."""
        return tuple(d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilation, strict=True))

    @property
    def symmetric(self) -> tuple[int, ...] | None:
        """The padding where it is known and the same before and after, else None."""
        if self.auto == "VALID":
            return (0,) * len(self.kernel)
        if self.auto != "NOTSET" or any(before != after or before < 0 for before, after in self.pads):
            return None
        return tuple(before for before, _ in self.pads)

    def padding(self, x: Tensor) -> list[tuple[int, int]]:
        """Return the padding before and after each spatial dimension of an input (n, channels, *spatial)."""
        if self.auto == "NOTSET":
            return list(self.pads)
        sides = []
        spans = self.kernel if self.pooling else self.reach  # onnxruntime pads poolings as if they were not dilated
        for size, s, span in zip(x.shape[2:], self.stride, spans, strict=True):
            total = (-(-size // s) - 1) * s + span - size if self.auto != "VALID" else 0
            total = total if self.pooling else max(total, 0)
            low = int((total + (self.auto == "SAME_LOWER")) / 2)
            sides.append((low, total - low))
        return sides

    def exact(self, x: Tensor) -> list[tuple[int, int]]:
        """Return the padding with which whole windows alone fit; a last window must begin before the padding ends."""
        sides = []
        for size, (before, after), s, span in zip(x.shape[2:], self.padding(x), self.stride, self.reach, strict=True):
            free = size + before + after - span
            count = (-(-free // s) if self.ceil else free // s) + 1
            if self.ceil and (count - 1) * s >= size + before:
                count -= 1
            sides.append((before, (count - 1) * s + span - size - before))
        return sides


def flat(sides: Sequence[tuple[int, int]], x: Tensor) -> list[int]:
    """Return padding as PyTorch takes it, the last dimension first."""
    spatial = x.shape[x.dim() - len(sides) :]
    room([*x.shape[: x.dim() - len(sides)], *(max(0, n + b + a) for n, (b, a) in zip(spatial, sides, strict=True))])
    return [pad for side in reversed(sides) for pad in side]
