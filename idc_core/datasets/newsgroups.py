"""Six groups of the 20 Newsgroups collection."""

import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from idc_core.base.progress import Progress, report
from idc_core.datasets.archived_pictures import MAX_EXPANSION
from idc_core.datasets.dataset import Items
from idc_core.datasets.registry import shipped
from idc_core.datasets.sources import RemoteFile, Source, obtain
from idc_core.datasets.words import LENGTH, build_vocabulary, encode_texts
from idc_core.errors import DataError
from idc_core.guarded import Archive, open_archive

GROUPS = ("comp.graphics", "rec.autos", "rec.motorcycles", "rec.sport.hockey", "sci.med", "sci.space")
_SEED = 0
_ZIP = "20news-bydate-6.zip"
_MESSAGES = {"train": 3563, "test": 2372}


@shipped(
    "20newsgroups",
    "20 Newsgroups, six groups",
    "3,563 training and 2,372 test messages from six newsgroups, without headers, quotes and footers.",
    class_names=GROUPS,
    input_shape=(LENGTH,),
    citation="K. Lang, NewsWeeder: Learning to Filter Netnews, ICML 1995; split by date by J. Rennie",
    licence="No licence text is given; messages posted to public newsgroups in 1993.",
)
def load(split: str, limit: int | None, on_progress: Progress | None) -> Items:
    """Return token ids int64 (n, 200), groups int64 (n,), the vocabulary of the training split, and the texts."""
    folder = obtain("20newsgroups", "20 Newsgroups", [(_ZIP,)], _SOURCE, on_progress)
    steps = 3
    with open_archive(folder / _ZIP, str(folder / _ZIP), expansion=MAX_EXPANSION) as archive:
        report(on_progress, 0, steps, "Reading the training messages")
        training, training_groups = _read(archive, "train")
        report(on_progress, 1, steps, "Counting the words")
        vocabulary = build_vocabulary(training)
        texts, groups = (training, training_groups) if split == "train" else _read(archive, "test", limit)
    report(on_progress, 2, steps, "Looking up the words")
    tokens = encode_texts(texts[:limit], vocabulary)
    report(on_progress, 3, steps, "Looking up the words")
    return Items(tokens, groups[:limit], vocabulary, tuple(texts[:limit]))


def _read(archive: Archive, split: str, limit: int | None = None) -> tuple[list[str], NDArray[np.int64]]:
    # Imported here: scikit-learn costs a second, and only this dataset needs it.
    from sklearn.datasets._twenty_newsgroups import (
        strip_newsgroup_footer,
        strip_newsgroup_header,
        strip_newsgroup_quoting,
    )

    names = [name for name in archive.names if name.startswith(f"20news-bydate-{split}/")]
    if not names:
        raise DataError(f"{archive.where} has no messages 20news-bydate-{split}/<group>/<number>.")
    groups = np.array([_group(archive.where, name) for name in names], np.int64)
    # The files are grouped by class: a fixed shuffle makes the first items a fair sample.
    order = np.random.RandomState(_SEED).permutation(len(names))[:limit]
    texts = []
    for index in order:
        text = archive.read(names[index]).decode("latin-1")
        # The order in which fetch_20newsgroups(remove=("headers", "footers", "quotes")) applies them.
        texts.append(strip_newsgroup_quoting(strip_newsgroup_footer(strip_newsgroup_header(text))))
    return texts, groups[order]


def _group(path: str, name: str) -> int:
    parts = name.split("/")
    if len(parts) != 3 or parts[1] not in GROUPS:
        raise DataError(f"{path}: the member {name} is in no known group; expected one of {', '.join(GROUPS)}.")
    return GROUPS.index(parts[1])


def _convert(fetched: Path, ready: Path) -> None:
    """Keep the six groups of the whole collection, in the layout that `load` reads."""
    import tarfile

    (collection,) = fetched.iterdir()
    messages: dict[str, bytes] = {}
    with tarfile.open(collection) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isfile() else None
            if content is not None and member.name.split("/")[1] in GROUPS:
                messages[member.name] = content.read()
    with zipfile.ZipFile(ready / _ZIP, "w", zipfile.ZIP_DEFLATED) as zipped:
        for split, expected in _MESSAGES.items():
            names = sorted(name for name in messages if name.startswith(f"20news-bydate-{split}/"))
            if len(names) != expected:
                raise ValueError(f"{len(names)} {split} messages came, not {expected}")
            for name in names:
                # A fixed time: the same messages always give the same file.
                zipped.writestr(zipfile.ZipInfo(name), messages[name], zipfile.ZIP_DEFLATED)


_SOURCE = Source(
    (
        RemoteFile(
            "https://ndownloader.figshare.com/files/5975967",
            "8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",
            14,
        ),
    ),
    _convert,
)
