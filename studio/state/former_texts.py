"""What options meant that addresses written before knew by their texts: name by text, for every control.

Addresses of today hold names. Nothing has to be added here when a text changes; what stands here stays.
"""

from __future__ import annotations

from itertools import pairwise

_METHODS = {
    "LRP-0 (z)": "z",
    "LRP-epsilon": "epsilon",
    "LRP-gamma": "gamma",
    "LRP-alpha-beta": "alpha-beta",
    "LRP composite": "composite",
    "Gradient times input": "gradient-x-input",
    "Integrated gradients": "integrated-gradients",
    "DeepLift": "deeplift",
    "Layer conductance": "conductance",
}
_CLASSES = tuple(map(str, range(10)))
_TOPICS = ("comp.graphics", "rec.autos", "rec.motorcycles", "rec.sport.hockey", "sci.med", "sci.space")
_OBJECTS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_NAMES = (_CLASSES, _TOPICS, _OBJECTS)
_EDGES = ("\u22120.78", "\u22120.08", "\u22120.01", "+0.02", "+0.08", "+0.50")
_ANGLES = [f"{low} to {high}" for low, high in pairwise(_EDGES)]
_RANKED = {
    "Cumulative relevance": "sum",
    "Absolute relevance": "absolute",
    **{f"Class {name}": f"group-{place}" for names in _NAMES for place, name in enumerate(names)},
    **{f"Answer {ends}": f"group-{place}" for place, ends in enumerate(_ANGLES)},
    **{f"Target {ends}": f"group-{place}" for place, ends in enumerate(_ANGLES)},
    **_METHODS,
}
_ORDERS = ("idc", "nc", "tknc", "tknp", "kmnc", "nbc", "snac", "lsc", "dsc", "mdsc", "cc")

FORMER: dict[str, dict[str, str]] = {
    "chapter": {
        "1 A network": "network",
        "2 Relevance": "relevance",
        "3 Importance": "importance",
        "4 States": "clusters",
        "4 Clusters": "clusters",
        "5 Cells": "cells",
        "6 Empty cells": "empty",
    },
    # On the page Learn, and of an attack.
    "explained": {
        "the winning answer": "answer",
        "the answer given": "answer",
        "the predicted class": "answer",
        "the right class": "right",
        "the true class": "right",
    },
    "step": {
        "all tests": "first",
        "least certain": "uncertain",
        "least confident": "uncertain",
        "largest errors": "missed",
    },
    "explain": {"the predicted class": "predicted"},
    "method": _METHODS,
    "second": {
        "the true class or runner-up": "next",
        **{f"class {name}": f"class {place}" for names in _NAMES for place, name in enumerate(names)},
        **{text: f"method {name}" for text, name in _METHODS.items()},
    },
    "scale": {
        "each picture": "picture",
        "each layer": "layer",
        "one for all": "all",
        "per picture": "picture",
        "per layer": "layer",
        "shared": "all",
    },
    "colours": {"red and blue": "red-blue", "orange and purple": "orange-purple"},
    "rank": _RANKED,
    "ranked-beside": _RANKED,
    "compared": _METHODS,
    "changed": {f"{share} %": str(share) for share in (1, 2, 5, 10)},
    "tried": {"2,000": "2000", **{f"all {tests}": "all" for tests in ("540", "1,404", "2,372", "5,120", "10,000")}},
    "plane": {"principal components": "linear", "UMAP": "umap"},
    "plane-colour": {"right answer": "target"},
    "colour": {"how often": "count", "share misclassified": "errors"},
    "attack": {
        "FGSM": "fgsm",
        "BIM": "bim",
        "PGD": "pgd",
        "DeepFool": "deepfool",
        "Carlini-Wagner L2": "cw",
        "JSMA": "jsma",
    },
    "goal": {"any wrong answer": "any", "any wrong class": "any"},
    "show": {"not fooled": "kept", "in new cells": "new", "in added cells": "new"},
    "magnify": {"as fits": "auto", "automatic": "auto"},
    "seeds": {
        "At random": "random",
        "As many of each class": "classes",
        "Least certain": "uncertain",
        "Closest to an uncovered cell": "cell",
    },
    "constraint": {
        "Light": "light",
        "Contrast": "contrast",
        "Rotation and shift": "shift",
        "Blur": "blur",
        "Occlusion": "occlusion",
        "Blackout": "blackout",
        "L-inf ball": "linf",
        "L2 ball": "l2",
        "Only these pixels": "only",
    },
    "guide": {
        "Neuron coverage": "nc",
        "Top-k neuron coverage": "tknc",
        "k-multisection neuron coverage": "kmnc",
        "Neuron boundary coverage": "nbc",
        "Strong neuron activation coverage": "snac",
        "Importance-Driven Coverage": "idc",
        "nothing": "none",
    },
    "objective": {"Margin": "margin", "Scores": "scores"},
    "perturbed-by": {
        "Random noise": "noise",
        "Relevance-guided noise": "guided",
        "Rotation": "rotation",
        "Shift": "shift",
        "Scale": "scale",
        "Brightness": "brightness",
        "Contrast": "contrast",
        "Blur": "blur",
        "Occlusion": "occlusion",
        "JPEG": "jpeg",
    },
    "begin": {"its own weights": "trained", "fresh weights": "scratch"},
    "over": {"growing subsets": "growing", "subsets of one size": "same", "subsets of equal size": "same"},
    "coefficient": {"Spearman": "spearman", "Kendall": "kendall"},
    "order": {
        **{f"{name.upper()}, most new coverage": name for name in _ORDERS},
        **{f"{name.upper()}, most surprising": f"{name}-value" for name in ("lsc", "dsc", "mdsc")},
        "NLC, largest gain": "nlc-value",
        "DeepGini": "deepgini",
        "Entropy": "entropy",
        "Margin": "margin",
    },
    "kind": {"additional (type 2)": "type2", "instead (type 1)": "type1"},
    "records": {"1,024": "1024", "4,096": "4096"},
    "early": {"not before the end": "never", "\u00b1 0.2": "0.2", "\u00b1 0.1": "0.1", "\u00b1 0.05": "0.05"},
    "rate": {"1 %": "1", "5 %": "5", "10 %": "10"},
    "swaps": {"random symbols": "symbols", "by the grammar": "grammar"},
}
