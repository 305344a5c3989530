"""What the pages are made of: the shell around them, engine calls, widgets, and one folder per page."""
