"""What only the testsets page is made of."""
