"""The streaming pass over inputs: batches in, scores, activations and relevance out."""
