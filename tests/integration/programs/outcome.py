"""What a program ends with: everything it computed, to the last bit."""

import hashlib
import json
from collections.abc import Sequence

from torch import Tensor, nn


def digest(tensors: Sequence[Tensor]) -> str:
    """A hash over the bytes of all tensors."""
    digest_so_far = hashlib.sha256()
    for tensor in tensors:
        digest_so_far.update(tensor.detach().contiguous().numpy().tobytes())
    return digest_so_far.hexdigest()


def tell(model: nn.Module, losses: Sequence[float]) -> None:
    """Print the weights' digest and every loss in full."""
    weights = digest(list(model.state_dict().values()))
    print(json.dumps({"weights": weights, "losses": [loss.hex() for loss in losses]}))
