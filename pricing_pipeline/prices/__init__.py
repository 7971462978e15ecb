"""Prices, documents and corporate actions: stored and read."""
