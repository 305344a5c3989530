"""One neuron's activations in clusters: exact one-dimensional k-means, and other methods by name."""
