"""What a run means: metrics, where the time went, verification, closed forms and bounds."""
