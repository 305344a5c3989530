"""What only the neurons page is made of."""
