"""Parts of the page Criteria alone."""
