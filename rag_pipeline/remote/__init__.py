"""What calls to other people's services have in common: when to ask again, and what a refusal means."""
