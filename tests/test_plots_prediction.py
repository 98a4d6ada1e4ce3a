"""The plot of a prediction: every N, its range, and a legend of what is drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ringnet.analysis.calibration import predict
from ringnet.api.machines import with_measured
from ringnet.formats.profiles import read_profile
from ringnet.reporting.plots.calibration import prediction_plot

PROFILE = read_profile(Path(__file__).parents[1] / "scenarios" / "data" / "v100-profile.yaml")
SIZES = 1024.0 * 2.0 ** np.arange(16)  # up to 32 MiB, as far as was measured


def table_of(*settings, sizes=SIZES):
    """Return predictions as the command makes them, a row per N and size."""
    found = [predict(PROFILE, PROFILE.setting_for(n), sizes) for n in settings]
    predicted = pd.concat(
        pd.DataFrame(
            {
                "n_workers": each.setting.n_workers,
                "message_bytes": each.message_bytes,
                "predicted_s": each.time_s,
                "low_s": each.low_s,
                "high_s": each.high_s,
                "is_beyond": each.is_beyond,
            }
        )
        for each in found
    )
    return with_measured(predicted, PROFILE)


def legend_of(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts() if text.get_text()]


def test_the_plot_of_a_prediction_draws_every_n():
    figure = prediction_plot("prediction", table_of(64, 128, 64))
    (ax,) = figure.axes
    assert len(ax.collections) == 2  # a range for each
    assert len({line.get_color() for line in ax.get_lines()}) == 3  # what was measured is grey
    assert {text.get_text() for text in ax.texts} == {"N=4", "N=8", "N=16", "N=32"}
    assert set(legend_of(figure)) == {
        "measured",
        "beyond what was measured",
        "range that holds nine in ten",
        "N=64",
        "N=128",
    }


def test_the_legend_of_a_prediction_has_what_is_drawn():
    assert "beyond what was measured" not in legend_of(prediction_plot("prediction", table_of(4, sizes=SIZES)))
    assert set(legend_of(prediction_plot("prediction", table_of(4, sizes=SIZES[8:9])))) == {
        "measured",
        "predicted",
        "N=4",
    }
