"""The keys of a scenario: how each value is read, and what it means."""
