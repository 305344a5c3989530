"""Parts of the page Test sets alone."""
