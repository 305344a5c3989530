"""What only the learn page is made of."""
