"""Stories: slides for a room, each one sentence and one large chart, kept, passed on as one file and read back."""
