"""Where knowledge comes from. Each module reads one kind of source and yields source items; none of them cleans."""
