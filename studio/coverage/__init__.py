"""What only the coverage page is made of."""
