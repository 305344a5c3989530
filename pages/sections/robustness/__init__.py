"""Parts of the page Robustness alone."""
