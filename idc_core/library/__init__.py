"""The library: networks and data sets that a person added from files, kept across restarts.

Entries are checksummed JSON, one file each; uploads are kept by content, other files are only referred to. Needs no
torch before something is read.
"""

from idc_core.library.adding import accepted, add_path, add_upload, kind_of
from idc_core.library.contents import used
from idc_core.library.entry import DataFacts, DataSettings, Entry, NetworkFacts, NetworkSettings, Stamp, plain_name
from idc_core.library.opening import enter_all, hidden, interface, named, owners, remedy
from idc_core.library.store import ENTRIES, delete, rename, replaced, share
from idc_core.library.understanding import DataForm, checked, connect, fitting, understand

__all__ = [
    "ENTRIES",
    "DataFacts",
    "DataForm",
    "DataSettings",
    "Entry",
    "NetworkFacts",
    "NetworkSettings",
    "Stamp",
    "accepted",
    "add_path",
    "add_upload",
    "checked",
    "connect",
    "delete",
    "enter_all",
    "fitting",
    "hidden",
    "interface",
    "kind_of",
    "named",
    "owners",
    "plain_name",
    "remedy",
    "rename",
    "replaced",
    "share",
    "understand",
    "used",
]
