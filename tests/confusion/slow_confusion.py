"""The definitions of DeepInspect, written down one value at a time."""

import math

import numpy as np


def statistic(output, channel_first):
    """Mean scaled output of every neuron for the raw output of one layer and one input."""
    low, high = output.min(), output.max()
    scaled = (output - low) / (high - low) if high > low else np.zeros_like(output)
    if scaled.ndim == 1:
        return scaled
    return np.array([channel.mean() for channel in (scaled if channel_first else np.moveaxis(scaled, -1, 0))])


def probability(values, labels, classes, threshold):
    """Share of the inputs of each class that activate each neuron; `labels` holds a set of classes an input."""
    found = np.full((values.shape[1], classes), np.nan)
    for c in range(classes):
        rows = [i for i, own in enumerate(labels) if c in own]
        for neuron in range(values.shape[1]):
            if rows:
                found[neuron, c] = sum(values[i, neuron] > threshold for i in rows) / len(rows)
    return found


def distance(matrix, normalise):
    classes = matrix.shape[1]
    found = np.full((classes, classes), np.nan)
    for a in range(classes):
        for b in range(classes):
            if np.isnan(matrix[0, [a, b]]).any():
                continue
            total = math.fsum((p - q) ** 2 for p, q in zip(matrix[:, a], matrix[:, b], strict=True))
            either = sum(p > 0 or q > 0 for p, q in zip(matrix[:, a], matrix[:, b], strict=True))
            found[a, b] = math.sqrt(total / either) if normalise and either else 0 if normalise else math.sqrt(total)
    return found


def type1(true, predicted, classes):
    """Single label."""
    found = np.full((classes, classes), np.nan)
    for a in range(classes):
        rows = [i for i, t in enumerate(true) if t == a]
        for b in range(classes):
            if rows and a != b:
                found[a, b] = sum(predicted[i] == b for i in rows) / len(rows)
    return found


def multi(true, predicted, kind, fewest):
    classes = true.shape[1]
    found = np.full((classes, classes), np.nan)
    for a in range(classes):
        for b in range(classes):
            rows = [i for i in range(len(true)) if true[i, a] and not true[i, b]]
            if a == b or len(rows) < max(1, fewest):
                continue
            hits = [predicted[i, b] and (predicted[i, a] if kind == "type2" else not predicted[i, a]) for i in rows]
            found[a, b] = sum(map(bool, hits)) / len(rows)
    return found


def pair(directional):
    classes = len(directional)
    found = np.full((classes, classes), np.nan)
    for a in range(classes):
        for b in range(classes):
            known = [v for v in (directional[a, b], directional[b, a]) if not math.isnan(v)]
            if a != b and known:
                found[a, b] = sum(known) / len(known)
    return found


def disparity(directional):
    both, classes = pair(directional), len(directional)
    found = np.full((classes, classes), np.nan)
    for a in range(classes):
        for b in range(classes):
            terms = [abs(both[a, c] - both[b, c]) for c in range(classes) if c not in (a, b)]
            terms = [term for term in terms if not math.isnan(term)]
            if a != b and terms:
                found[a, b] = sum(terms) / len(terms)
    return found


def triplets(distances, filtered):
    """Bias of every triplet (a, b, c) of defined classes by equation (3)."""
    known = [c for c in range(len(distances)) if not math.isnan(distances[c, c])]
    pairs = [distances[a, b] for a in known for b in known if a < b]
    cut = np.mean(pairs) - np.std(pairs)
    found = {}
    for a in known:
        for b in known:
            for c in known:
                if len({a, b, c}) == 3:
                    one, other = distances[c, a], distances[c, b]
                    far = filtered and one > cut and other > cut
                    found[a, b, c] = 0 if far or one + other == 0 else abs(one - other) / (one + other)
    return found, known


def bias(distances, filtered):
    values, known = triplets(distances, filtered)
    found = np.full(distances.shape, np.nan)
    for a in known:
        for b in known:
            if a != b:
                found[a, b] = sum(values[a, b, c] for c in known if c not in (a, b)) / (len(known) - 2)
    return found


def counts(score, truth, low):
    """True and reported pairs at one standard deviation."""
    classes = len(score)
    pairs = [(a, b) for a in range(classes) for b in range(a + 1, classes)]
    pairs = [p for p in pairs if not math.isnan(score[p]) and not math.isnan(truth[p])]
    scores, facts = [score[p] for p in pairs], [truth[p] for p in pairs]
    limit = np.mean(scores) + (-np.std(scores) if low else np.std(scores))
    true = {p for p in pairs if truth[p] > np.mean(facts) + np.std(facts)}
    reported = {p for p in pairs if (score[p] < limit if low else score[p] > limit)}
    return pairs, true, reported


def drawn_at_random(hits, total, marked, drawn):
    """Probability of so many marked ones among those drawn without replacement."""
    if hits > marked or drawn - hits > total - marked:
        return 0.0
    return math.comb(marked, hits) * math.comb(total - marked, drawn - hits) / math.comb(total, drawn)


def as_many_by_chance(own, behind, wrong, total):
    """Probability that a pair has `own` or more of all wrong inputs, drawn from all."""
    return math.fsum(drawn_at_random(k, total, behind, wrong) for k in range(own, min(behind, wrong) + 1))


def binomial(hits, trials, share):
    return math.exp(
        math.lgamma(trials + 1)
        - math.lgamma(hits + 1)
        - math.lgamma(trials - hits + 1)
        + hits * math.log(share)
        + (trials - hits) * math.log1p(-share)
    )


def disparity_of_equal_rates(directional, inputs, ends, draws):
    """Mean disparity of two classes, and the range of 95 %, where both are confused alike with each third class."""
    random, (a, b) = np.random.default_rng(11), ends
    values = []
    for _ in range(draws):
        again = np.full(directional.shape, np.nan)
        for c in range(len(directional)):
            if c in ends:
                continue
            of_ends = (directional[a, c] * inputs[a, c] + directional[b, c] * inputs[b, c]) / (
                inputs[a, c] + inputs[b, c]
            )
            of_third = (directional[c, a] + directional[c, b]) / 2
            for end in ends:
                again[end, c] = random.binomial(inputs[end, c], of_ends) / inputs[end, c]
                again[c, end] = random.binomial(inputs[c, end], of_third) / inputs[c, end]
        values.append(disparity(again)[a, b])
    return np.mean(values), *np.quantile(values, [0.025, 0.975])
