"""What pages share: the frame with the bench, cached results with progress, and pieces of layout."""
