"""Datasets: one file each, a registry, and `load_dataset`."""

# The order of these imports is the order of the registry, and of every menu made from it.
from idc_core.datasets import digits, mnist, fashion_mnist, cifar10, udacity, newsgroups, sql  # noqa: F401, I001
from idc_core.datasets.dataset import Dataset, Items
from idc_core.datasets.entry import DatasetEntry
from idc_core.datasets import files, pictures  # noqa: F401 (their readers enter themselves)
from idc_core.datasets.registry import DATASETS, load_dataset

__all__ = ["DATASETS", "Dataset", "DatasetEntry", "Items", "load_dataset"]
