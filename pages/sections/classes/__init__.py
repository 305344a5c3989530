"""Parts of the page Class errors alone."""
