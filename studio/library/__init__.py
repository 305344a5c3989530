"""What only the library page is made of."""
