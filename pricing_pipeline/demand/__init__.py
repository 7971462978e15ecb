"""Who wants what, and what of it is due."""
