"""Calibration: from measured times to a machine's latency and bandwidth, and back to times."""

from __future__ import annotations

from ringnet.analysis.calibration.calibration import Calibration, CalibrationVerdict, calibrate
from ringnet.analysis.calibration.links import HostPiece, LinkPiece, host_links, n_hops, ring_link
from ringnet.analysis.calibration.models import MODELS, PASSES, Samples, Setting
from ringnet.analysis.calibration.prediction import Prediction, predict
from ringnet.analysis.calibration.profile import Profile, Regime, SourceFile

__all__ = [
    "MODELS",
    "PASSES",
    "Calibration",
    "CalibrationVerdict",
    "HostPiece",
    "LinkPiece",
    "Prediction",
    "Profile",
    "Regime",
    "Samples",
    "Setting",
    "SourceFile",
    "calibrate",
    "host_links",
    "n_hops",
    "predict",
    "ring_link",
]
