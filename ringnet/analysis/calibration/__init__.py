"""Calibration: from measured times to a machine's links, and back to times."""

from __future__ import annotations

from ringnet.analysis.calibration.calibration import Calibration, CalibrationVerdict, calibrate
from ringnet.analysis.calibration.links import HostPiece, LinkPiece, host_links, ring_launch_s, ring_link
from ringnet.analysis.calibration.prediction import Prediction, predict
from ringnet.analysis.calibration.profile import Curve, Profile, SourceFile
from ringnet.analysis.calibration.samples import PASSES, Samples, Setting

__all__ = [
    "PASSES",
    "Calibration",
    "CalibrationVerdict",
    "Curve",
    "HostPiece",
    "LinkPiece",
    "Prediction",
    "Profile",
    "Samples",
    "Setting",
    "SourceFile",
    "calibrate",
    "host_links",
    "predict",
    "ring_launch_s",
    "ring_link",
]
