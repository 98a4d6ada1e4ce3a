"""What was read from disk may say anything: numbers that a page counts with are such as a run writes, or refused."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from ringnet.errors import Fault, ResultsError

#: Of whole numbers: what a browser counts exactly, and workers, of which tables are made.
MOST, MOST_WORKERS = 2.0**53, 1_000_000


def check_cells(
    frame: pd.DataFrame, file: str, whole: Mapping[str, float], times: tuple[str, ...] = ()
) -> None:
    """Refuse cells that are no whole number, or no time, as a run writes them.

    Parameters
    ----------
    frame : DataFrame
    file : str
        Where it was read from.
    whole : mapping of str to float
        Columns of whole numbers from 0 on, and the most that each may be.
    times : tuple of str
        Columns of finite seconds from 0 on.

    Raises
    ------
    ResultsError
        With the first such cell of the first such column.
    """
    for name in (*whole, *times):
        cells = pd.to_numeric(frame[name], errors="coerce").to_numpy(np.float64, na_value=np.nan)
        bad = ~(np.isfinite(cells) & (cells >= 0))
        if name in whole:
            bad |= (cells != np.floor(cells)) | (cells > whole[name])
        if bad.any():
            at = int(bad.argmax())
            right = (
                f"a whole number, at most {whole[name]:.15g}" if name in whole else "a time of at least 0 s"
            )
            raise ResultsError(
                Fault("no run writes this", name, file, at + 2, str(frame[name].iloc[at])[:40], right)
            )


def check_summary(frame: pd.DataFrame, file: str) -> None:
    """Refuse rows of a summary, or of a comparison, whose workers or bytes are no numbers of such."""
    most = {"n_workers": MOST_WORKERS, "message_bytes": MOST}
    if "verified_elements" in frame:
        frame, most = frame.fillna({"verified_elements": 0}), most | {"verified_elements": MOST}
    check_cells(frame, file, most)
    if not (frame["n_workers"] > 0).all():
        at = int((frame["n_workers"] > 0).argmin())
        raise ResultsError(Fault("no run writes this", "n_workers", file, at + 2, "0", "at least 1"))
