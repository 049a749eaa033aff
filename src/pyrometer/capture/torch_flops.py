"""Floating-point operations of a module's forward pass, by formula.

Counted are the multiplications and additions of matrix products and convolutions; modules that do
none of these count 0. A class without a formula is not counted at all, and said so.
"""

import sys
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

_Formula = Callable[[Any, Sequence[Any], Sequence[Any]], int]

_NONE_TO_COUNT = (
    "Identity", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout",
    "Flatten", "Unflatten", "Embedding", "Sequential", "ModuleList", "ModuleDict",
    "ReLU", "ReLU6", "LeakyReLU", "PReLU", "ELU", "SELU", "CELU", "GELU", "SiLU", "Mish", "Sigmoid", "Tanh",
    "Softplus", "Softsign", "Hardtanh", "Hardswish", "Hardsigmoid", "LogSigmoid", "Softmax", "LogSoftmax",
    "Softmin", "GLU", "Threshold",
    "LayerNorm", "RMSNorm", "GroupNorm", "LocalResponseNorm",
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d",
    "MaxPool1d", "MaxPool2d", "MaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d",
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d",
    "ZeroPad2d", "ConstantPad1d", "ConstantPad2d", "ReflectionPad2d", "Upsample", "PixelShuffle",
    "CrossEntropyLoss", "MSELoss", "L1Loss", "NLLLoss", "BCELoss", "BCEWithLogitsLoss", "SmoothL1Loss",
    "HuberLoss",
)  # fmt: skip


def flops_of(module: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> int | None:
    """The operations of one call, without those of modules below.

    None when its shapes do not tell, or nobody knows them: a subclass with a forward of its own is
    not what the formula is for.
    """
    formula = _formula_of(module)
    if formula is None:
        return None
    try:
        return formula(module, inputs, outputs)
    except (ArithmeticError, AttributeError, IndexError, TypeError, ValueError):
        return None  # called in a way the formula does not know


def _formula_of(module: Any) -> _Formula | None:
    kinds: tuple[Any, ...] = type(module).__mro__
    for kind in kinds:
        formula = _FORMULAS.get((kind.__module__.partition(".")[0], kind.__name__))
        if formula is not None:
            return formula if type(module).forward is kind.forward else None
    return None


def _none(_: Any, _inputs: Sequence[Any], _outputs: Sequence[Any]) -> int:
    return 0


def _linear(module: Any, _: Sequence[Any], outputs: Sequence[Any]) -> int:
    return int(2 * outputs[0].numel() * module.in_features)


def _linear_transposed(_: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> int:
    """Hugging Face's ``Conv1D``: a linear layer whose weight is stored the other way round."""
    return int(2 * outputs[0].numel() * inputs[0].shape[-1])


def _bilinear(module: Any, _: Sequence[Any], outputs: Sequence[Any]) -> int:
    return int(2 * outputs[0].numel() * module.in1_features * (module.in2_features + 1))


# Never by the weight itself, which a parametrization computes anew, and differently, each time it is asked.
def _convolution(module: Any, _: Sequence[Any], outputs: Sequence[Any]) -> int:
    return int(2 * outputs[0].numel() * module.in_channels // module.groups * prod(module.kernel_size))


def _transposed_convolution(module: Any, inputs: Sequence[Any], _: Sequence[Any]) -> int:
    return int(2 * inputs[0].numel() * module.out_channels // module.groups * prod(module.kernel_size))


def _recurrent(module: Any, inputs: Sequence[Any], _: Sequence[Any]) -> int:
    """One product with the input and one with the state, in each layer, direction and step."""
    steps = inputs[0].numel() // module.input_size
    return int(2 * steps * sum(weight.numel() for weight in module.parameters() if weight.dim() > 1))


def _attention(module: Any, inputs: Sequence[Any], _: Sequence[Any]) -> int:
    """Four projections, the scores and their product with the values."""
    query, key, value = (*inputs, inputs[-1], inputs[-1])[:3]
    if query.dim() not in {2, 3} or sys.modules["torch"].is_tensor(query) is False:
        raise ValueError("not a sequence")
    batch = 1 if query.dim() == 2 else query.numel() // (query.shape[-1] * _length(module, query))
    wide, target, source = module.embed_dim, _length(module, query), _length(module, key)
    projections = 2 * batch * wide * (2 * target * wide + source * (key.shape[-1] + value.shape[-1]))
    return int(projections + 4 * batch * target * source * wide)


def _length(module: Any, sequence: Any) -> int:
    if sequence.dim() == 2:
        return int(sequence.shape[0])
    return int(sequence.shape[1 if module.batch_first else 0])


_FORMULAS: dict[tuple[str, str], _Formula] = {
    **{("torch", name): _none for name in _NONE_TO_COUNT},
    ("torch", "Linear"): _linear,
    ("torch", "Bilinear"): _bilinear,
    **{("torch", f"Conv{size}d"): _convolution for size in (1, 2, 3)},
    **{("torch", f"ConvTranspose{size}d"): _transposed_convolution for size in (1, 2, 3)},
    **{("torch", name): _recurrent for name in ("LSTM", "GRU", "RNN")},
    ("torch", "MultiheadAttention"): _attention,
    ("transformers", "Conv1D"): _linear_transposed,
}
