"""Data that are wrong or meant to harm, as a person may be given them: how each is made, what is said of it."""

import io
import pickle
import warnings
import zipfile

import numpy as np
import pyarrow as pa
from PIL import Image
from pyarrow import parquet

from tests.guarded.hostile import plain, png
from tests.library.wrong_networks import BOMB, Trap, pickled

GREY = np.random.default_rng(0).integers(0, 256, (12, 9, 8), dtype=np.uint8)
CLASSES = np.arange(12) % 3
GIGAPIXEL = png(31_623, 31_623)


def text(content, name="it.csv"):
    """A file of any content."""

    def make(folder):
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return folder / name

    return make


def arrays(**changed):
    """An npz file of grey pictures, with other arrays; None leaves one out."""

    def make(folder):
        given = {name: one for name, one in ({"x": GREY, "y": CLASSES} | changed).items() if one is not None}
        np.savez(folder / "it.npz", **given)
        return folder / "it.npz"

    return make


def objects(name):
    """Python objects in an array."""

    def make(folder):
        held = np.array([Trap(folder)] * 4, object)
        if name.endswith(".npy"):
            np.save(folder / "y.npy", np.arange(4))
            np.save(folder / name, held)
        else:
            np.savez(folder / name, x=held, y=np.arange(4))
        return folder / name

    return make


def members(*given):
    """An npz file of members as they are given."""

    def make(folder):
        with warnings.catch_warnings(), zipfile.ZipFile(folder / "it.npz", "w", zipfile.ZIP_DEFLATED) as archive:
            warnings.simplefilter("ignore")  # a name that comes twice
            for name, content in given:
                archive.writestr(name, content)
        return folder / "it.npz"

    return make


def png_of(values):
    stream = io.BytesIO()
    Image.fromarray(values).save(stream, "PNG")
    return stream.getvalue()


PICTURES = {f"{name}/{n}.png": png_of(GREY[n]) for name in ("cat", "dog") for n in range(4)}


def pictured(more=(), links=(), zipped=False, without=""):
    """Class folders of grey pictures, or a zip file of them, with further members and links."""

    def make(folder):
        files = {name: one for name, one in PICTURES.items() if not without or not name.startswith(without)}
        files |= dict(more)
        path = folder / ("mine.zip" if zipped else "mine")
        if zipped:
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
                for name, content in files.items():
                    archive.writestr(name, content)
                for name in links:
                    about = zipfile.ZipInfo(name)
                    about.external_attr = 0o120777 << 16
                    archive.writestr(about, "/etc/passwd")
            return path
        for name, content in files.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(content)
        (folder / "secret.png").write_bytes(png_of(GREY[0]))
        for name in links:
            (path / name).symlink_to(folder / "secret.png")
        return path

    return make


def named(picture):
    """A CSV file that names pictures beside it, one of them as given."""

    def make(folder):
        inner = folder / "inner"
        inner.mkdir()
        (folder / "secret.png").write_bytes(png_of(GREY[0]))
        (inner / "link.png").symlink_to(folder / "secret.png")
        (inner / "large.png").write_bytes(GIGAPIXEL)
        for number in range(3):
            (inner / f"{number}.png").write_bytes(png_of(GREY[number]))
        rows = [f"{number}.png,{number % 2}" for number in range(3)]
        (inner / "it.csv").write_text("\n".join(["image,label", *rows, f"{picture},1", ""]))
        return inner / "it.csv"

    return make


def in_parquet(folder):
    """Pictures as bytes in a table, one of 10^9 pixels."""
    held = [*(png_of(GREY[number]) for number in range(3)), GIGAPIXEL]
    parquet.write_table(pa.table({"image": held, "label": [0, 1, 0, 1]}), folder / "it.parquet")
    return folder / "it.parquet"


def npy_of(values):
    stream = io.BytesIO()
    np.save(stream, values)
    return stream.getvalue()


def idx_pair(folder):
    """IDX images whose header says too much, with labels."""
    text(b"\0\0\x08\x01\0\0\0\2\0\1", "labels.idx")(folder)
    return text(b"\0\0\x08\x01" + bytes([59, 154, 202, 0, 1, 2]), "images.idx")(folder)


def strange_folders(folder):
    """Classes whose names hold a newline, HTML, or a mark that turns the text."""
    path = pictured()(folder)
    for old, new in (("cat", "a\nb<b>"), ("dog", "evil\u202egnp")):
        (path / old).rename(path / new)
    return path


ROWS = "a,label\n1,x\n2,y\n3,x\n4,y\n"
COLOURS = np.random.default_rng(1).integers(0, 256, (12, 6, 8, 4), dtype=np.uint8)

DATA = {
    "a pickle, .npz": (pickled("it.npz"), "it.npz"),
    "objects in .npz": (objects("it.npz"), "holds Python objects, which are not read"),
    "a pickle, .npy": (pickled("x.npy", beside="y.npy"), "is no NumPy array"),
    "an array without targets": (text(npy_of(GREY), "x.npy"), "is one array alone: its targets must lie beside it"),
    "objects in .npy": (objects("x.npy"), "holds Python objects, which are not read"),
    "a pickle, .csv": (text(pickle.dumps([1] * 99)), "it.csv"),
    "a pickle, .pkl": (pickled("it.pkl"), "may be a pickle, which can run code"),
    "npz: an array of 10^9 numbers": (members(("x.npy", BOMB), ("y.npy", plain())), "4,000,000,000 bytes"),
    "npz: a name twice": (members(("x.npy", plain()), ("x.npy", plain()), ("y.npy", plain())), "member x.npy twice"),
    "zip: above its folder": (pictured({"../cat/9.png": b""}, zipped=True), "leads out of its folder"),
    "zip: an absolute path": (pictured({"/cat/9.png": b""}, zipped=True), "leads out of its folder"),
    "zip: a drive": (pictured({"C:/cat/9.png": b""}, zipped=True), "leads out of its folder"),
    "zip: a link": (pictured(links=["dog/x.png"], zipped=True), "'dog/x.png' is not a whole picture"),
    "zip: a bomb": (pictured({"dog/x.bmp": bytes(30_000_000)}, zipped=True), "refused as a trap"),
    "zip: nothing": (text(b"PK\5\6" + bytes(18), "it.zip"), "holds no pictures"),
    "a folder with a link out of it": (pictured(links=["dog/x.png"]), "is a link that leads out"),
    "a table that names ../": (named("../secret.png"), "outside the table's folder: refused"),
    "a table that names an absolute path": (named("/etc/passwd"), "outside the table's folder: refused"),
    "a table that names a link": (named("link.png"), "outside the table's folder: refused"),
    "10^9 pixels in a folder": (pictured({"dog/x.png": GIGAPIXEL}), "not a whole picture (Image size"),
    "10^9 pixels in a zip file": (pictured({"dog/x.png": GIGAPIXEL}, zipped=True), "not a whole picture (Image size"),
    "10^9 pixels that a table names": (named("large.png"), "row 4"),
    "10^9 pixels in Parquet": (in_parquet, "row 4"),
    "labels as words": (arrays(y=np.array(["dog", "cat"] * 6)), ("cat", "dog")),
    "labels with gaps": (arrays(y=np.array([7, 100, 20] * 4)), ("7", "20", "100")),
    "negative labels": (arrays(y=CLASSES - 1), "the class -1 at item 0"),
    "labels that are no numbers": (arrays(y=np.full(12, np.nan)), "the target nan at item 0"),
    "fewer labels than inputs": (arrays(y=CLASSES[:5]), "12 inputs and 5 targets"),
    "no inputs in npz": (arrays(x=GREY[:0], y=CLASSES[:0]), "has no items"),
    "no inputs in CSV": (text("a,label\n"), "no rows"),
    "no inputs in JSON": (text("[]", "it.json"), "no records"),
    "no pictures in a folder": (pictured(without=("cat", "dog"), more={"readme.txt": b"x"}), "holds no pictures"),
    "one class in npz": (arrays(y=np.zeros(12, int)), "one class only, '0'"),
    "one class in a folder": (pictured(without="dog"), "one class only ('cat')"),
    "one class in CSV": (text("a,label\n1,x\n2,x\n"), "one class only"),
    "whole floats of 0..255": (arrays(x=GREY.astype(np.float32)), "values divided by 255"),
    "other floats of 0..255": (arrays(x=GREY[:, None] * 0.99), "divide them by 255"),
    "standardised pictures": (arrays(x=GREY[:, None] / 255 - 0.5), "belong to the network"),
    "RGBA for RGB in npz": (arrays(x=COLOURS), "--channels 3 leaves the fourth channel out"),
    "RGBA for RGB in a folder": (
        pictured({f"{name}/{n}.png": png_of(COLOURS[n]) for name in ("cat", "dog") for n in range(4)}), ("cat", "dog")),
    "NaN among inputs": (arrays(x=np.where(GREY > 250, np.nan, 0.0)), "not finite, first in item"),
    "columns twice": (text("a,a,label\n1,2,x\n2,3,y\n"), "several columns named 'a'"),
    "a key twice": (text('[{"a": 1, "a": 2, "label": 0}]', "it.json"), "a key comes twice"),
    "names of classes twice": (arrays(class_names=np.array(["a", "a", "b"])), "different names"),
    "UTF-16": (text(ROWS.encode("utf-16")), ("x", "y")),
    "UTF-16 without its mark": (text(ROWS.encode("utf-16-le")), ("x", "y")),
    "formulas": (
        text("text,label\n" + '"=cmd|\'/c calc\'!A1",=1+1\n"=HYPERLINK(""http://a.b"")",@b\n' * 4), ("=1+1", "@b")),
    "10^6 columns": (text(b"label," + b"a," * 1_000_000 + b"b\n"), "1,000,002 columns; at most 20,000"),
    "a column named with a newline": (text('"a\nb",label\n' + "1,x\n2,y\n" * 6), ("x", "y")),
    "a column from right to left": (text("\u202ea,label\n1,x\n2,y\n"), r"the column '\u202ea'"),
    "a class named with a newline": (arrays(y=np.array(["a\nb", "a"] * 6)), r"the class name 'a\nb'"),
    "a class from right to left": (arrays(y=np.array(["\u202egnp", "a"] * 6)), r"the class name '\u202egnp'"),
    "a class named with HTML": (arrays(y=np.array(["<b>x</b>", "<i>"] * 6)), ("<b>x</b>", "<i>")),
    "folders with such names": (strange_folders, ("a\ufffdb<b>", "evil\ufffdgnp")),
    "JSON in a million brackets": (text("[" * 1_000_000, "it.json"), "it.json"),
    "IDX without labels": (text(b"\0\0\x08\x01\0\0\0\2\1\0", "images.idx"), "is one IDX file alone"),
    "IDX that says 10^9 items": (idx_pair, "holds 2 bytes of data where its header says 1,000,000,000"),
}  # fmt: skip
"""Kind of file -> how it is made, and what must be said of it; a tuple: it is read, and these are its classes."""
