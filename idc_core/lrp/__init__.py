"""Layer-wise relevance propagation: its rules, carried through any network by intercepting operations."""
