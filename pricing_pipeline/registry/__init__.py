"""What can be priced: data types and their providers, and the calendars of markets."""
