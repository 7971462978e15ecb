"""Files of this machine, below the settings: `.env`, and files that only we may change."""
