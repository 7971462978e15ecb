"""The work of a drain: claim, call, check, store, finish."""
