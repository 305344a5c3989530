"""The Runs page: finished results listed, opened, compared, and followed over the versions of a network."""
