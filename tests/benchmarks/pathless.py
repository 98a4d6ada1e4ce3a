"""``ringnet`` without the path that ended last and without the slowest link: what a run takes but for both."""

from __future__ import annotations

from ringnet.analysis import result
from ringnet.analysis.blame import SlowestLinks
from ringnet.cli import main

if __name__ == "__main__":
    result.Run.path = property(lambda self: None)
    result.slowest_links = lambda *asked: SlowestLinks()
    main()
