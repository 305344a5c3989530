"""The 15 corruptions at five severities that robustness is measured with in this field; a file per kind.

D. Hendrycks, T. Dietterich, "Benchmarking Neural Network Robustness to Common Corruptions and Perturbations", ICLR
2019. Written after the package imagecorruptions 1.1.2, whose numbers are kept. `benchmarks/peer_corruptions.py`
compares both at the same draws, four photographs of 32, 64 and 224 pixels at every severity: of 49,766,400 values
seven differ, by one level, where OpenCV adds in another order (defocus blur 6, snow 1). The photographs of frost that
it lays over pictures do not come with the project: frost is equal where it is given them, and draws crystals of its
own here.
"""

from importlib import import_module
from pkgutil import iter_modules

from idc_core.perturbation.corruptions.registry import CITATION, CORRUPTIONS, SEVERITY, corrupt, corruption

__all__ = ["CITATION", "CORRUPTIONS", "SEVERITY", "corrupt", "corruption"]

for _name in ("noise", "blur", "weather", "digital"):  # the order of menus
    import_module(f"{__name__}.{_name}")
for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
