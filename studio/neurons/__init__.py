"""What the Neurons page is made of."""
