"""The nouns that every layer shares: frozen values, no behaviour that needs a database or a network."""
