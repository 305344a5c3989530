"""Hold the engine's detectors of strange pictures beside pytorch-ood's; for the environment of the peers.

Both are fitted to the same training pictures and calibrated on the same tests; what counts is how many known-bad
pictures each accepts where 95 % of natural ones pass. Run by hand: `make peers`, then
`PYTHONPATH=. .venv-peers/bin/python -m benchmarks.peer_ood`.
"""

import json
import sys
from typing import Any

import numpy as np
import torch

from benchmarks.peers import enter
from idc_core.datasets import load_dataset
from idc_core.evidence.validity import REJECTED, Validity, conformal_p
from idc_core.filling import judging
from idc_core.filling.judging import fit_judge
from idc_core.filling.known_bad import known_bad
from idc_core.models import load_model
from idc_core.tracing.trace import collect

NETWORKS = ("lenet5-digits", "lenet5-mnist")


def engine(told: Validity) -> dict[str, object]:
    """Return what is known of one of the engine's detectors."""
    return {"natural": told.natural.share, "known-bad": told.bad.share, "by kind": kinds(told)}


def kinds(told: Validity) -> dict[str, float]:
    return {kind.what: round(kind.share, 3) for kind in told.known_bad}


def seen(model: Any, layer: str, pictures: Any) -> tuple[Any, Any]:
    """Return features (n, d) and scores (n, classes) of pictures."""
    found = collect(model, pictures, [layer])
    return torch.from_numpy(np.array(found.activations[layer])), torch.from_numpy(np.array(found.scores))


def peers(model: Any, layer: str, train: Any, test: Any) -> dict[str, dict[str, object]]:
    """Fit and calibrate pytorch-ood's detectors, on the pictures that `fit_judge` draws with seed 0."""
    enter("pytorch_ood")  # its own code imports torchvision, which the detectors do without
    from pytorch_ood.detector import KNN, EnergyBased, Mahalanobis, MaxSoftmax

    random = np.random.default_rng(0)
    fitted = np.sort(random.permutation(len(train))[: judging._FITTED])
    held_out = random.permutation(len(test))[: judging._HELD_OUT]
    ranked, natural = (test.inputs[np.sort(held_out[part::3])] for part in (0, 2))
    bad = {kind: made[1::2] for kind, made in known_bad(natural, 0).items()}
    features, _ = seen(model, layer, train.inputs[fitted])
    classes = torch.from_numpy(train.targets[fitted])
    detectors = {
        "KNN": (KNN(None).fit_features(features, classes).predict_features, 0),
        "Mahalanobis": (Mahalanobis(None).fit_features(features, classes).predict_features, 0),
        "energy": (EnergyBased(None).predict_logits, 1),
        "softmax": (MaxSoftmax(None).predict_logits, 1),
    }
    rows: dict[str, dict[str, object]] = {}
    for name, (one, place) in detectors.items():

        def strange(pictures: Any, one: Any = one, place: int = place) -> Any:
            return np.asarray(one(seen(model, layer, pictures)[place]).detach().numpy(), np.float64)

        calibration = strange(ranked)
        passed = {kind: conformal_p(calibration, strange(made)) > REJECTED for kind, made in bad.items()}
        rows[name] = {
            "natural": float((conformal_p(calibration, strange(natural)) > REJECTED).mean()),
            "known-bad": float(np.concatenate(list(passed.values())).mean()),
            "by kind": {kind: round(float(accepts.mean()), 3) for kind, accepts in passed.items()},
        }
    return rows


def main() -> None:
    """Compare on each network, and print a row per detector as JSON."""
    rows = []
    for name in sys.argv[1:] or NETWORKS:
        model = load_model(name)
        data, layer = model.card.dataset, model.card.default_layer
        train, test = load_dataset(data, "train"), load_dataset(data, "test")
        judge = fit_judge(model, layer, train, test)
        ours = {told.detector: engine(told) for told in (judge.validity, *judge.others)}
        for whose, found in (("engine", ours), ("pytorch-ood", peers(model, layer, train, test))):
            for detector, row in found.items():
                chosen = whose == "engine" and detector == judge.validity.detector
                rows.append({"network": name, "of": whose, "detector": detector, "chosen": chosen, **row})
    print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
