"""Processes and files of a running pipeline. Nothing here knows the database."""
