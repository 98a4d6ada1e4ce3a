"""Other tools' files, read and written: untrusted input."""
