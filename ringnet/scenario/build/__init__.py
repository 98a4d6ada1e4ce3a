"""YAML to a checked `Scenario`: overrides, sweeps, and every mistake at once."""
