"""The shell around every page: frame, sidebar, address, selection, pinned setup and guided tour."""
