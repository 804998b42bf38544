"""Documents to chunks: where to cut, and counting tokens. Pure functions of text and settings."""
