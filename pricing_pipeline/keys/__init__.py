"""Secrets: API keys sealed in the database, master keys, and which process knows which of them."""
