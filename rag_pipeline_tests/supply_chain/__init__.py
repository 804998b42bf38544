"""What we depend on: declared, described, audited, and silent on the network."""
