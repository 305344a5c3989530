"""A priority, as a person would write it: one file outside the package."""

from idc_core.importance.important_neurons import priority


@priority("toy-support", label="Toy support", help="Only what speaks for decisions counts.")
def support(relevance):
    return relevance.clip(0)
