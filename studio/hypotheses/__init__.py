"""What only the hypotheses page is made of."""
