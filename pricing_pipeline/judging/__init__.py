"""Judges which values of an answer can be true. Pure functions: they know neither database nor network."""
