"""What only the criteria page is made of."""
