"""Parts of the page Adversarial alone."""
