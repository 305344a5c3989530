"""What the Relevance page is made of."""
