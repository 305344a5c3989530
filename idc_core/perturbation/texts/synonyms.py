"""Synonyms: words exchanged for others of about the same meaning, from a list of common English words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from idc_core.datasets.reading import Reading
from idc_core.perturbation.texts.registry import register_text_change

_GROUPS = """
also too; answer reply response; ask inquire request; bad poor awful terrible; begin start; big large huge;
buy purchase; car automobile vehicle; change alter modify; cheap inexpensive; children kids; choose select pick;
claim assert; clear obvious evident; close near; common usual frequent; complete entire whole full; correct right;
cost price; create make produce; damage harm; danger risk; deal bargain; decide determine; difficult hard tough;
discuss debate; disease illness sickness; doctor physician; drug medicine medication; easy simple; end finish;
engine motor; error mistake fault; example instance; explain describe; fast quick rapid; fight battle; find discover;
fix repair; force power; forget overlook; fun enjoyable; game match; get obtain receive; give provide supply;
goal aim target; good fine great nice; group team; grow increase; guess estimate suppose; happen occur;
happy glad pleased; hear listen; help assist aid; hit strike; home house; hope wish; idea thought notion;
image picture photo; important significant major; information data; injury wound; interesting fascinating;
job work; kill murder; kind type sort; know understand; last final; launch liftoff; law rule; leave depart; likely
probable; little small tiny; live reside; look see watch; lose misplace; mail email; many numerous; maybe perhaps
possibly; mean signify; money cash funds; month months; move shift; name title; need require; new recent fresh;
number amount; often frequently; old ancient; only just merely; orbit circle; part piece portion; pay spend;
people persons folks; place location spot; plan scheme; play perform; post message article; probably likely;
problem trouble issue; program software; prove demonstrate show; put place set; question query; read study; real
actual genuine; really truly actually; reason cause; remember recall; result outcome; ride drive; right correct;
rocket missile; sad unhappy; safe secure; say state tell; score points; second moment; sell trade; send transmit;
several various; shot throw; sick ill; side edge; single one; smart clever; space cosmos; speed velocity; stay
remain; stop halt; street road; strange odd weird; strong powerful; stuff things; sure certain; surgery operation;
take grab; talk speak; teacher instructor; test exam trial; thanks thank; think believe; tire wheel; treat cure;
true real; try attempt; ugly unattractive; understand grasp; use utilize employ; useful helpful; very extremely;
view opinion; want desire; war conflict; weak feeble; win victory; wonderful marvelous; world earth globe;
worry concern; write compose; wrong incorrect; year years; young youthful
"""


def _read(groups: str) -> dict[str, tuple[str, ...]]:
    """Return the synonyms of every word, those of all its groups."""
    found: dict[str, list[str]] = {}
    for group in " ".join(groups.split()).split(";"):
        words = group.split()
        for word in words:
            found.setdefault(word, []).extend(other for other in words if other != word)
    return {word: tuple(dict.fromkeys(others)) for word, others in found.items()}


SYNONYMS = _read(_GROUPS)
"""Synonyms by word, all in small letters."""


def _known(word: str, reading: Reading) -> list[str]:
    """Return the synonyms that the network can read."""
    return [other for other in SYNONYMS.get(word, ()) if reading.is_spelt or other in reading.ids]


@register_text_change(
    "synonyms",
    "Synonyms",
    "Exchanges some common English words for others of about the same meaning that the network knows.",
    "Wei and Zou, EMNLP 2019",
    fits=lambda word, reading: bool(_known(word, reading)),
)
def _synonyms(words: list[str], places: NDArray[np.int64], random: np.random.Generator, reading: Reading) -> list[str]:
    changed = list(words)
    for at in places:
        others = _known(words[at], reading)
        changed[at] = others[int(random.integers(len(others)))]
    return changed
