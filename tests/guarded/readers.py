"""Every reader of files, one entry each: what a module that reads files must be named in."""

from tests.guarded.kept_files import KEPT
from tests.guarded.own_files import OWN
from tests.guarded.published_files import PUBLISHED

READERS = (*OWN, *KEPT, *PUBLISHED)
