"""The estimators: thin wiring of the rooms, one file a section."""
