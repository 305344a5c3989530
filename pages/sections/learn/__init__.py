"""Parts of the page Learn alone."""
