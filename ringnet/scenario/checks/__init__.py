"""Keys that are right one by one and wrong together."""
