"""Speed, as ratios measured in one run: `python -m benchmarks` runs every module here named bench_*.

OpenMP is left as torch finds it, as in anyone's own script; the dashboard and the command line, which share a machine
with others, let its threads sleep sooner (`idc_core/base/threads.py`).
"""
