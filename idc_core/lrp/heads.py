"""What each head of an attention gives, found by operation while the network runs: before the heads are mixed again.

An attention is `scaled_dot_product_attention`, `nn.MultiheadAttention`, or a softmax whose result is multiplied with
values (`matmul`, `bmm`, `einsum`). Nothing is known of modules or of families of networks.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from torch import Tensor

from idc_core.lrp.calls import Args, Kwargs, plain_name
from idc_core.lrp.lineage import ELEMENTWISE_STEPS
from idc_core.lrp.operations import SOFTMAX, STRUCTURAL

MULTI_HEAD = "multi_head_attention_forward"
"""An attention in one operation together with its projections; its handler tells of its heads."""

_MOVES = STRUCTURAL | ELEMENTWISE_STEPS

_PRODUCTS = frozenset(("matmul", "__matmul__", "bmm"))


@dataclass(frozen=True)
class _HeadLayout:
    """How the result of an attention lies: from its own layout to (n, heads, tokens, features), and back.

    `order` puts its axes in the order inputs, groups, heads, tokens, features; groups are windows of a picture, and
    inputs, groups and heads may share one axis, or inputs and groups.
    """

    order: tuple[int, ...]
    rows: int

    def heads_of(self, value: Tensor) -> Tensor:
        """Return (n, heads, tokens, features); the tokens of all groups one after the other."""
        value = value.permute(self.order)
        heads = value.shape[-3] if value.dim() > 3 else len(value) // self.rows
        grouped = value.reshape(self.rows, -1, heads, *value.shape[-2:])
        result: Tensor = grouped.transpose(1, 2).flatten(2, 3)
        return result

    def back(self, heads: Tensor, like: Tensor) -> Tensor:
        """Return what heads give in the layout of the attention's own result."""
        shape = like.permute(self.order).shape
        groups: Tensor = heads.unflatten(2, (-1, shape[-2])).transpose(1, 2).reshape(shape)
        return groups.permute([self.order.index(axis) for axis in range(len(self.order))])


@dataclass(eq=False)
class HeadFinder:
    """Tells attentions among the operations of a network of `rows` inputs, by what they are."""

    rows: int
    weights: dict[int, Tensor] = field(default_factory=dict)
    """What softmax gave inside the network, and what was only moved or scaled since, by identity."""

    def met(self, name: str, args: Args, kwargs: Kwargs, result: object) -> _HeadLayout | None:
        """Hear of an operation and its result; return the result's layout where that is what heads give."""
        if not isinstance(result, Tensor) or result.dim() < 3:
            return None
        if name == "scaled_dot_product_attention":
            return self._layout(result, range(result.dim()))
        plain, given = plain_name(name, kwargs)[0], [x for x in args if isinstance(x, Tensor)]
        if plain in SOFTMAX or (plain in _MOVES and self._known(given[:1])):
            self.weights[id(result)] = result
            return None
        if plain == "einsum" and isinstance(args[0], str):
            given = _operands(args)
            return self._of_einsum(args[0], given, result) if len(given) == 2 and self._known(given) else None
        if plain not in _PRODUCTS or not self._known(given):
            return None
        order = list(range(result.dim()))
        if not self._known(given[:1]):
            order[-2:] = reversed(order[-2:])  # values times weights: features come before tokens
        self.weights.clear()
        return self._layout(result, order)

    def _known(self, tensors: list[Tensor]) -> bool:
        return any(id(x) in self.weights for x in tensors)

    def _of_einsum(self, equation: str, given: list[Tensor], result: Tensor) -> _HeadLayout | None:
        sides, _, letters = equation.replace(" ", "").partition("->")
        names = sides.split(",")
        if not letters or "." in equation or len(names) != 2:
            return None
        weights, values = names if self._known(given[:1]) else reversed(names)
        self.weights.clear()
        shared = [axis for axis, letter in enumerate(letters) if letter in weights and letter in values]
        tokens = [axis for axis, letter in enumerate(letters) if letter in weights and letter not in values]
        features = [axis for axis, letter in enumerate(letters) if letter not in weights]
        return self._layout(result, [*shared, *tokens, *features]) if len(tokens) == len(features) == 1 else None

    def _layout(self, result: Tensor, order: Iterable[int]) -> _HeadLayout | None:
        layout = _HeadLayout(tuple(order), self.rows)
        first = result.shape[layout.order[0]]
        return layout if first and first % self.rows == 0 else None


def _operands(args: Args) -> list[Tensor]:
    """Return the tensors of a call of einsum, which takes them one by one or as a list."""
    given = args[1] if len(args) == 2 and isinstance(args[1], tuple | list) else args[1:]
    return [x for x in given if isinstance(x, Tensor)]
