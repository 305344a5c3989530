"""Random networks that write into views of what they computed, each beside one that computes the same without writing.

The second is the slow, obvious version: it looks numbers up by their position, computes new ones, and puts them into
their places by `torch.where`, so that nothing in it shares memory with anything else.
"""

import random
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn

CHANNELS, SIDE = 4, 4


def view_chains(v, at):
    """Return the views that can be taken of a tensor, by the code that takes them."""
    found, shape = {}, tuple(v.shape)
    wide = [axis for axis, size in enumerate(shape) if axis and size > 1]
    if wide:
        axis = at.choice(wide)
        half, part = shape[axis] // 2, ":, " * axis
        found |= {
            f"[{part}:{half}]": lambda x: x[(slice(None),) * axis + (slice(None, half),)],
            f"[{part}1::2]": lambda x: x[(slice(None),) * axis + (slice(1, None, 2),)],
            f".narrow({axis}, 1, {half})": lambda x: x.narrow(axis, 1, half),
            f".select({axis}, {half})": lambda x: x.select(axis, half),
            f"[{part}{half}]": lambda x: x[(slice(None),) * axis + (half,)],
            f"torch.narrow({axis}, 0, 1).squeeze({axis})": lambda x: torch.narrow(x, axis, 0, 1).squeeze(axis),
            f".chunk(2, {axis})[1]": lambda x: x.chunk(2, axis)[1],
            f"torch.split(x, 1, {axis})[0]": lambda x: torch.split(x, 1, axis)[0],
            f".unbind({axis})[0]": lambda x: x.unbind(axis)[0],
            f".tensor_split(2, {axis})[0]": lambda x: x.tensor_split(2, axis)[0],
            f".unfold({axis}, {half}, {half})": lambda x: x.unfold(axis, half, half),
            f".flatten({axis})": lambda x: x.flatten(axis),
            f".unsqueeze({axis})": lambda x: x.unsqueeze(axis),
        }
        if shape[axis] % 2 == 0:
            found[f".unflatten({axis}, (2, -1))"] = lambda x: x.unflatten(axis, (2, -1))
    if len(wide) > 1:
        one, two = wide[0], wide[-1]
        found |= {
            f".transpose({one}, {two})": lambda x: x.transpose(one, two),
            f".movedim({two}, {one})": lambda x: x.movedim(two, one),
            f".swapaxes({one}, {two})": lambda x: x.swapaxes(one, two),
            f".diagonal(0, {one}, {two})": lambda x: x.diagonal(0, one, two),
            ".mT": lambda x: x.mT,
        }
    if len(shape) > 2:
        found |= {".view(n, -1)": lambda x: x.view(len(x), -1), ".flatten(1)": lambda x: x.flatten(1)}
        found |= {".reshape(n, -1)": lambda x: x.reshape(len(x), -1)}
        found |= {".view(n, k, -1)": lambda x: x.view(len(x), x.shape[1], -1)}
        found |= {".view_as": lambda x: x.view_as(torch.empty(len(x), x[0].numel()))}
    found |= {
        "[:, None]": lambda x: x[:, None],
        ".view(-1).view(shape)": lambda x: x.view(-1).view(x.shape),
        ".view(-1)": lambda x: x.view(-1),
        ".contiguous()": lambda x: x.contiguous(),
        ".as_strided": lambda x: x.as_strided(x.size(), x.stride(), x.storage_offset()),
        ".clone()": lambda x: x.clone(),
        ".to(dtype)": lambda x: x.to(x.dtype),
        "[...]": lambda x: x[...],
    }
    return found


def _set(v, index, value):
    v[index] = value


def _added(v):
    v += 0.5


def _scaled(v):
    v *= -2.0


def _constant(v):
    return torch.full_like(v.detach(), 0.25)


def _mask(v):
    return (torch.arange(v[0].numel()).reshape(v.shape[1:]) % 3 == 0).expand(v.shape)  # the same of each input


def _every(v, axis):
    return torch.arange(0, v.shape[axis], 2)


def _where(mask, value, v):
    return torch.where(mask, torch.full((), value, dtype=v.dtype), v)


def _indexed(v):
    mask = torch.zeros(v.shape, dtype=torch.bool)
    mask.index_fill_(-1, _every(v, -1), True)
    return mask


WRITES = {
    "add_(0.5)": (lambda v: v.add_(0.5), lambda v: v + 0.5),
    "+= 0.5": (_added, lambda v: v + 0.5),
    "*= -2": (_scaled, lambda v: v * -2.0),
    "mul_(3)": (lambda v: v.mul_(3.0), lambda v: v * 3.0),
    "sub_(1).div_(2)": (lambda v: v.sub_(1.0).div_(2.0), lambda v: (v - 1.0) / 2.0),
    "relu_()": (lambda v: v.relu_(), torch.relu),
    "torch.relu_": (torch.relu_, torch.relu),
    "F.relu(inplace)": (lambda v: F.relu(v, inplace=True), torch.relu),
    "F.relu(v, True)": (lambda v: F.relu(v, True), torch.relu),
    "nn.LeakyReLU": (lambda v: F.leaky_relu(v, 0.1, inplace=True), lambda v: F.leaky_relu(v, 0.1)),
    "clamp_": (lambda v: v.clamp_(-0.2, 0.4), lambda v: v.clamp(-0.2, 0.4)),
    "tanh_": (lambda v: v.tanh_(), torch.tanh),
    "neg_": (lambda v: v.neg_(), torch.neg),
    "copy_(2 v)": (lambda v: v.copy_(v * 2.0), lambda v: v * 2.0),
    "copy_(constant)": (lambda v: v.copy_(_constant(v)), lambda v: _constant(v)),
    "v[...] = relu": (lambda v: _set(v, ..., torch.relu(v)), torch.relu),
    "v[:, None][:, 0] *= 2": (lambda v: v[:, None][:, 0].mul_(2.0), lambda v: v * 2.0),
    "v[mask] = 0.3": (lambda v: _set(v, _mask(v), 0.3), lambda v: _where(_mask(v), 0.3, v)),
    "v[..., ::2] = 0.3": (lambda v: _set(v, (..., slice(None, None, 2)), 0.3), lambda v: _where(_indexed(v), 0.3, v)),
    "masked_fill_": (lambda v: v.masked_fill_(_mask(v), 0.3), lambda v: v.masked_fill(_mask(v), 0.3)),
    "index_fill_": (lambda v: v.index_fill_(-1, _every(v, -1), 0.3), lambda v: _where(_indexed(v), 0.3, v)),
    "index_copy_": (
        lambda v: v.index_copy_(-1, _every(v, -1), torch.relu(v.index_select(-1, _every(v, -1)))),
        lambda v: torch.where(_indexed(v), torch.relu(v), v),
    ),
    "index_put_": (
        lambda v: v.index_put_((_mask(v),), torch.relu(v[_mask(v)])),
        lambda v: torch.where(_mask(v), torch.relu(v), v),
    ),
    "masked_scatter_": (
        lambda v: v.masked_scatter_(_mask(v), torch.relu(v[_mask(v)])),
        lambda v: torch.where(_mask(v), torch.relu(v), v),
    ),
    "scatter_": (
        lambda v: v.scatter_(-1, torch.zeros_like(v[..., :1], dtype=torch.long), torch.relu(v[..., :1])),
        lambda v: torch.cat([torch.relu(v[..., :1]), v[..., 1:]], -1),
    ),
    "zero_": (lambda v: v.zero_(), lambda v: torch.zeros_like(v.detach())),
    "fill_": (lambda v: v.fill_(0.2), lambda v: torch.full_like(v.detach(), 0.2)),
    "out=": (lambda v: torch.mul(v, 1.5, out=v), lambda v: v * 1.5),
    "out= of an activation": (lambda v: torch.sigmoid(v, out=v), torch.sigmoid),
    "add_ itself": (lambda v: v.add_(v), lambda v: v + v),
    "transpose_ and back": (lambda v: v.transpose_(0, -1).mul_(2.0), lambda v: v * 2.0),
    "unsqueeze_ first": (lambda v: v.unsqueeze_(1).relu_(), torch.relu),
}


STARTS = {
    "conv": lambda net, x: net.conv(x),
    "relu": lambda net, x: torch.relu(net.conv(x)),
    "clone": lambda net, x: net.conv(x).clone(),
    "sum": lambda net, x: net.conv(x) + 0.1,
    "permuted": lambda net, x: torch.tanh(net.conv(x).permute(0, 2, 3, 1)),
    "channels last": lambda net, x: net.conv(x).contiguous(memory_format=torch.channels_last),
    "pooled": lambda net, x: F.avg_pool2d(net.conv(x), 1),
    "normalised": lambda net, x: net.norm(net.conv(x)),
    "cat": lambda net, x: torch.cat([net.conv(x)[:, :2], torch.relu(net.conv(x)[:, 2:])], 1),
}


@dataclass
class Step:
    """Views of values, one of another, and what is written into the last; `early` ones are taken at the start."""

    chain: list
    write: str
    early: bool
    said: str = ""

    def of(self, values):
        """Return the last of the views."""
        for take in self.chain:
            values = take(values)
        return values


@dataclass
class Program:
    """What one network does."""

    start: str
    steps: list[Step] = field(default_factory=list)
    ends_with_view: bool = False
    quiet: bool = False  # whether it writes without gradients
    width: int = 1  # numbers of an input in the last view

    def __str__(self):
        steps = "; ".join(f"{'early ' * step.early}h{step.said} {step.write}" for step in self.steps)
        return f"{self.start}; {steps}{'; and the last view' * self.ends_with_view}{'; no_grad' * self.quiet}"


def program(seed, count=2, colours=3):
    """Return a random program; what each view looks at is found by taking it of numbers that say where they are."""
    at = random.Random(seed)
    made = Program(at.choice(list(STARTS)), ends_with_view=at.random() < 0.4, quiet=at.random() < 0.15)
    with torch.no_grad():
        example = STARTS[made.start](Parts(colours), torch.zeros(count, colours, SIDE, SIDE))
    numbered = _numbered(example)
    for _ in range(at.choice((1, 2, 2, 3))):
        step = Step([], at.choice(list(WRITES)), at.random() < 0.5)
        v = numbered
        for _ in range(at.choice((1, 1, 2, 3))):
            said, take = at.choice(list(view_chains(v, at).items()))
            try:
                v = take(v)
            except RuntimeError:  # such a view of this layout there is not
                continue
            step.chain.append(take)
            step.said += said
            if v.dim() < 2:  # of which further views would mix inputs
                break
        if v.dim() < 2:
            step.write = at.choice(("add_(0.5)", "relu_()", "*= -2", "fill_", "copy_(2 v)"))
        made.steps.append(step)
    made.width = v.numel() // count
    return made


def _numbered(values):
    """Return the position of each value, laid out in memory as they are."""
    numbered = torch.empty_strided(values.shape, values.stride(), dtype=torch.float64)
    return numbered.copy_(torch.arange(values.numel()).reshape(values.shape))


class Parts(nn.Module):
    """The weights of a program."""

    def __init__(self, colours):
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.norm = nn.Conv2d(colours, CHANNELS, 3, padding=1), nn.BatchNorm2d(CHANNELS)
        self.norm.running_mean += 0.1
        self.norm.running_var += 0.5
        self.out = nn.Linear(CHANNELS * SIDE**2, 3)
        self.eval()


class Written(Parts):
    """Does what a program says, in place."""

    def __init__(self, made, colours):
        super().__init__(colours)
        self.made, self.colours = made, colours
        if made.ends_with_view:
            self.skip = nn.Linear(made.width, 3)

    def forward(self, x):
        h = STARTS[self.made.start](self, x)
        early = [step.of(h) if step.early else None for step in self.made.steps]
        v = h
        for step, view in zip(self.made.steps, early, strict=True):
            v = step.of(h) if view is None else view
            with torch.set_grad_enabled(torch.is_grad_enabled() and not self.made.quiet):
                WRITES[step.write][0](v[...])
        scores = self.out(h.flatten(1))
        return scores + self.skip(v.reshape(len(x), -1)) if self.made.ends_with_view else scores


class Plain(nn.Module):
    """Does the same without writing into anything."""

    def __init__(self, made, network):
        super().__init__()
        self.made = made
        self.net = network if isinstance(network, Written) else Written(made, network)
        self.eval()

    def forward(self, x):
        h = STARTS[self.made.start](self.net, x)
        numbered = _numbered(h)
        places = [step.of(numbered) for step in self.made.steps]
        shared = [x.untyped_storage().data_ptr() == numbered.untyped_storage().data_ptr() for x in places]
        early = [_seen(h, where) for where in places]
        for step, where, shares, copy in zip(self.made.steps, places, shared, early, strict=True):
            v = WRITES[step.write][1](copy if step.early and not shares else _seen(h, where))
            if shares:
                h = _put(h, where, v)
        scores = self.net.out(h.flatten(1))
        if self.made.ends_with_view:
            v = _seen(h, places[-1]) if shared[-1] else v
            scores = scores + self.net.skip(v.reshape(len(x), -1))
        return scores


def _seen(h, where):
    return h.reshape(-1).index_select(0, where.long().reshape(-1)).reshape(where.shape)


def _put(h, where, v):
    source, there = torch.zeros(h.numel(), dtype=torch.long), torch.zeros(h.numel(), dtype=torch.bool)
    source[where.long().reshape(-1)] = torch.arange(where.numel())
    there[where.long().reshape(-1)] = True
    return torch.where(there.reshape(h.shape), v.reshape(-1).index_select(0, source).reshape(h.shape), h)
