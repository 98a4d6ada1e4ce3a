"""ringnet: a discrete-event network performance simulator of ring all-reduce."""
