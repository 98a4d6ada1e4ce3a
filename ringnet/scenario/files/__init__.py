"""What a scenario takes from elsewhere: presets, and the files that it names."""
