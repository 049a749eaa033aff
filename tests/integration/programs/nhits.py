"""neuralforecast's N-HiTS fitted on a generated series: 25 steps, then a forecast."""

import logging
import math
import warnings

import pandas as pd
import torch
from neuralforecast import NeuralForecast
from neuralforecast.models import NHITS
from outcome import tell


def main() -> None:
    """Fit, forecast, and tell what came out."""
    warnings.simplefilter("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    days = pd.date_range("2024-01-01", periods=200, freq="D")
    values = [math.sin(day / 7) + 0.01 * day for day in range(200)]
    series = pd.DataFrame({"unique_id": "series", "ds": days, "y": values})
    model = NHITS(
        h=7,
        input_size=28,
        max_steps=25,
        batch_size=1,
        windows_batch_size=32,
        mlp_units=[[32, 32]] * 3,
        random_seed=1,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_checkpointing=False,
        enable_model_summary=False,
    )
    forecaster = NeuralForecast(models=[model], freq="D")
    forecaster.fit(series)
    forecast = forecaster.predict()
    tell(forecaster.models[0], [float(value) for value in forecast["NHITS"]])


if __name__ == "__main__":
    main()
