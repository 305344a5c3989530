"""What one page alone is made of, a folder a page."""
