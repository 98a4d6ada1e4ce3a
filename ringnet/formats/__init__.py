"""Other tools' files, read and written; what they hold is untrusted."""
