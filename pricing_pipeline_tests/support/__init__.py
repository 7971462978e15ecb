"""What several test files use beside fixtures."""
