"""What only the layers page is made of."""
