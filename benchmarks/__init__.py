"""Speed, as ratios measured in one run: `python -m benchmarks` runs every module here named bench_*."""

import os

# Before torch is imported: threads that spin would slow down whatever is measured next to them.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
