"""DeepXplore's figures for MNIST, by table, case and measure."""

from __future__ import annotations

DIFFERENCES = "seeds with a difference"
L1 = "mean L1 distance"
COVERAGE = "neuron coverage"
SECONDS = "seconds to a difference"

PUBLISHED: dict[tuple[str, str, str], float] = {
    **{("Table 2", f"LeNet-{number}", DIFFERENCES): found / 20 for number, found in ((1, 1073), (4, 1968), (5, 827))},
    **{
        ("Table 5", f"light, scores, lambda2 = {weight}", measure): value
        for weight, found in ((0, (39.9, 201.1, 68.3)), (1, (35.2, 239.7, 69.5)))
        for measure, value in zip((DIFFERENCES, L1, COVERAGE), found, strict=True)
    },
    **{("Table 6", f"LeNet-{number}", COVERAGE): value for number, value in ((1, 32.7), (4, 33.1), (5, 25.7))},
    ("Table 7", "two classes", "neurons active"): 83.6,
    ("Table 7", "one class", "neurons active"): 84.1,
    ("Table 7", "two classes", "neurons of both"): 45.9,
    ("Table 7", "one class", "neurons of both"): 74.2,
    **{
        ("Table 8", f"LeNet-{number}", measure): value
        for number, seconds in ((1, 6.6), (4, 6.8), (5, 7.6))
        for measure, value in (("seconds to full coverage", seconds), ("seeds to full coverage", 9))
    },
    **{
        (table, f"{name} = {value:g}", SECONDS): seconds
        for table, name, figures in (
            ("Table 9", "step", {0.01: 0.19, 0.1: 0.26, 1: 0.65, 10: 0.62, 100: 0.65}),
            ("Table 10", "lambda1", {0.5: 0.28, 1: 0.25, 2: 0.2, 3: 0.17}),
            ("Table 11", "lambda2", {0.5: 0.19, 1: 0.22, 2: 0.23, 3: 0.26}),
        )
        for value, seconds in figures.items()
    },
    **{
        ("Figure 9", f"{kind}, t = {threshold:g}", COVERAGE): value
        for kind, figures in (
            ("differences", (100, 81, 75, 70)),
            ("FGSM", (93, 70, 63, 45)),
            ("random tests", (93, 69, 61, 44)),
        )
        for threshold, value in zip((0, 0.25, 0.5, 0.75), figures, strict=True)
    },
}
"""Published figures by table, case and measure, in the units of the rows; those of Figure 9 are read off it (2 points
either way), numbers of differences are shares of
the 2,000 seeds, and Table 5's are means of its three experiments."""
