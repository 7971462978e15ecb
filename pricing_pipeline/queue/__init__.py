"""Tasks, and how many calls each provider may make now."""
