"""The report of an analysis: one web page that needs nothing else, and the same as JSON."""
