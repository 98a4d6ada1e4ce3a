"""One run: its parts built from a scenario, proved, run by the engine that suits, and verified."""
