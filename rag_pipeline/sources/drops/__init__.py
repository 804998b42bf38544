"""Knowledge dropped into an inbox: GitHub deliveries, JSON, NDJSON and plain files."""
