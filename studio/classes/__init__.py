"""What only the classes page is made of."""
