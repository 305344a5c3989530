"""An objective from a person's own file: the probability of the class."""

from idc_core.generation.objectives import objective


@objective("probability", label="Probability", help="The probability of the class after the softmax.")
def probability(scores, classes, others):
    own = scores.softmax(1).gather(1, classes[:, None])[:, 0]
    return own / others, own
