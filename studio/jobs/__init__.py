"""Engine calls of the pages: jobs with progress and stop, each result computed once."""
