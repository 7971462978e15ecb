"""Secrets: API keys sealed in the database, master keys, and the secrets that each process gets."""
