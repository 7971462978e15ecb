"""Programs for those who work on the project: mutants, rules for providers, the pages of the schema."""
