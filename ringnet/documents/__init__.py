"""Text of others to data that remembers where each value stood: YAML and XML, bounded, every mistake with its line."""
