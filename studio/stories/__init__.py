"""Stories: listed, edited, played, passed on as files."""
