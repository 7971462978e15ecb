"""Products and their slots: stored, and read as they are or were believed.

What providers answer is in domain/inventory.py, the tables and what counts as a change are in db/functions/inventory.
Nothing here knows a provider, and nothing waits for one.
"""
