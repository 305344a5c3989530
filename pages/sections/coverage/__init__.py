"""Parts of the page Coverage alone."""
