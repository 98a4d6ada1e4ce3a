"""Calibration: from measured times to a machine's latency and bandwidth, and back to times."""

from __future__ import annotations

from ringnet.analysis.calibration.calibration import Calibration, calibrate
from ringnet.analysis.calibration.links import HostPiece, LinkPiece, host_links, n_hops, ring_link
from ringnet.analysis.calibration.models import MODELS, PASSES
from ringnet.analysis.calibration.prediction import Prediction, predict
from ringnet.analysis.calibration.profile import Profile, Regime, Source
from ringnet.analysis.calibration.samples import Samples, Setting
from ringnet.analysis.calibration.verdict import Verdict

__all__ = [
    "MODELS",
    "PASSES",
    "Calibration",
    "HostPiece",
    "LinkPiece",
    "Prediction",
    "Profile",
    "Regime",
    "Samples",
    "Setting",
    "Source",
    "Verdict",
    "calibrate",
    "host_links",
    "n_hops",
    "predict",
    "ring_link",
]
