"""Parts of the page Clusters alone."""
