"""What only the clusters page is made of."""
