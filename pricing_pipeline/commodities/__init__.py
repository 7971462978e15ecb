"""Commodities of a game: storing and reading their prices, and the ETL that brings all of them.

The tables belong to this package; what a provider says is in providers/uex.py and providers/uex_lists.py.
"""
