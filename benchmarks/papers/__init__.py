"""Every published figure accounted for: `python -m benchmarks.papers` writes docs/results/papers.md.

`accounts.py` says of every row of the published tables whether it is reproduced, where, and why not; `results/` holds
what the experiments wrote by `--out`.
"""
