"""The whole method on one network, test set and layer; on every layer; and what the results are compared with."""
