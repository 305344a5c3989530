"""Parts of the page Layers alone."""
