"""Search hits to an answer with citations."""
