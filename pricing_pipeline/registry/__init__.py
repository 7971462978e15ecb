"""The registry: data types and their providers, and the calendars of markets."""
