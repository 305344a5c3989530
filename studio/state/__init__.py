"""What a session looks at: the setup, the selection, and the address that both are part of."""
