"""Networks that were not made for this project, under its own commands: `make wild` runs it and writes docs/WILD.md.

Each network runs in a process of its own. What it showed is one line of JSON in results/, so that a run can be stopped
and goes on where it was.
"""
