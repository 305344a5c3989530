"""Which neurons are important: Algorithm 1, and every other ranking of a layer's neurons."""
