"""Which networks of the registry can be compared with one of them."""

from idc_core.models.registry import MODELS, find_entry

MOST = 3
"""Networks that are compared unless others are named."""


def companions(name: str) -> tuple[str, ...]:
    """Return networks that were trained here for the same task on the same data.

    Parameters
    ----------
    name : str
        A network of the registry; the first one returned, also where its weights are published ones.

    Returns
    -------
    tuple of str
        At most `MOST`, in the order of the registry; only the network itself where there is no other.

    Raises
    ------
    ModelError
        If there is no such network.
    """
    own = find_entry(name)
    others = [key for key, one in MODELS.items() if key != name and one.dataset == own.dataset and not one.published]
    return (name, *others[: MOST - 1])
