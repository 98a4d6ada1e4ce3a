"""The reference engine: SimPy processes for workers and links, transfer by transfer, to the timing model."""

from ringnet.engines.events.run import Job, Traffic, run_events, run_jobs

__all__ = ["Job", "Traffic", "run_events", "run_jobs"]
