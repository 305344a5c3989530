"""What only the adversarial page is made of."""
