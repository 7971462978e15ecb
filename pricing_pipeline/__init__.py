"""Keep exactly the prices people look at fresh, inside every provider's limits."""
