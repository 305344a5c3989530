"""Parts of the page Neurons alone."""
