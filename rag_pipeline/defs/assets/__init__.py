"""Asset definitions, a module per stage."""
