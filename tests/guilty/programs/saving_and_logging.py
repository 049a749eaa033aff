"""The model is saved in each fifth step; its twin saves it once, at the end."""

import tempfile
from pathlib import Path

import torch
from loop import GUILTY, net, train

model = net(hidden=1_500, layers=4)
with tempfile.TemporaryDirectory() as folder:

    def after(step: int) -> None:
        if GUILTY and step % 5 == 0:
            torch.save(model.state_dict(), Path(folder) / "model.pt")

    train(model, [torch.randn(4, 64)] * 60, after=after)
    torch.save(model.state_dict(), Path(folder) / "model.pt")
