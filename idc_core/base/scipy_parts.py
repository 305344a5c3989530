"""The parts of SciPy that several threads of a server ask for at once: here one thread loads them, and others wait.

Python lets two threads that load parts of SciPy which need each other go on with what is half loaded.
"""

from scipy import ndimage, special, stats
from scipy.cluster import hierarchy

__all__ = ["hierarchy", "ndimage", "special", "stats"]
