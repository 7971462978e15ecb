"""Side effects: what is to happen outside the database, queued in the transaction that causes it."""
