"""A setup file whose network ends in a way of its own as soon as it sees more than two inputs."""

SETUP = """
import os, pathlib, sys, time
import numpy as np, torch
import idc_core as idc

class Odd(BaseException):
    pass

class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no text")

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(4, 5), torch.nn.Linear(5, 3)
    def forward(self, x):
        if len(x) > 2:
            END
        return self.last(torch.relu(self.first(x)))

@idc.dataset("tiny", class_names=("a", "b", "c"))
def read(split):
    draw = np.random.default_rng(split == "test")
    return draw.random((40, 4), np.float32), draw.integers(0, 3, 40)

@idc.network("dying", "Dying", data="tiny", layer="first")
def build():
    torch.manual_seed(0)
    return Net()
"""

CHECK = """
setup = "setup.py"

[[check]]
model = "dying"

[[check.limit]]
kind = "accuracy"
at_least = 0
"""

COMMANDS = {"check": ("check", "idc.toml"), "analyze": ("analyze", "--setup", "setup.py", "--model", "dying")}


def write(folder, end):
    """Write the setup file, and the file of a check that names it."""
    (folder / "setup.py").write_text(SETUP.replace("END", end), encoding="utf-8")
    (folder / "idc.toml").write_text(CHECK, encoding="utf-8")
