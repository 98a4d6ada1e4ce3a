"""``python -m ringnet``."""

from __future__ import annotations

from ringnet.cli import main

if __name__ == "__main__":
    main()
