"""The one way in for files from outside: nothing is allocated before it is counted, every failure is an `IdcError`."""

from idc_core.guarded.archives import Archive, open_archive
from idc_core.guarded.arrays import ArrayFile, ArrayHeader, open_arrays, pack_arrays, read_array, read_arrays
from idc_core.guarded.budget import Budget
from idc_core.guarded.compressed import open_gzip
from idc_core.guarded.folders import Folder
from idc_core.guarded.members import member
from idc_core.guarded.opening import File, opened, read_content
from idc_core.guarded.photos import PictureHeader, picture_header, read_photo
from idc_core.guarded.pictures import read_picture
from idc_core.guarded.sealed import check_sealed_zip, damaged, is_sealed, open_sealed_text, seal_text, seal_zip
from idc_core.guarded.texts import read_json, read_json_lines, read_text, read_toml, typed

__all__ = [
    "Archive",
    "ArrayFile",
    "ArrayHeader",
    "Budget",
    "File",
    "Folder",
    "PictureHeader",
    "check_sealed_zip",
    "damaged",
    "is_sealed",
    "member",
    "open_archive",
    "open_arrays",
    "open_gzip",
    "open_sealed_text",
    "opened",
    "pack_arrays",
    "picture_header",
    "read_array",
    "read_arrays",
    "read_content",
    "read_json",
    "read_json_lines",
    "read_photo",
    "read_picture",
    "read_text",
    "read_toml",
    "seal_text",
    "seal_zip",
    "typed",
]
