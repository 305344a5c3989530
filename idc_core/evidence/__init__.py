"""What a number on a page is worth: its control, its interval, and whether it stands out from chance."""
