"""Parts of the page Differential alone."""
