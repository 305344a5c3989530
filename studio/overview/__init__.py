"""What the Overview is made of."""
