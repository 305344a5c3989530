"""Parts of the page Hypotheses alone."""
