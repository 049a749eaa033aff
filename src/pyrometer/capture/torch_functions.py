"""Which of torch's functions are which phase, and how they are replaced."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyrometer._native import Watch
from pyrometer.capture.losses import note_failure
from pyrometer.capture.patches import Patches
from pyrometer.capture.torch_gpu import GpuWatch
from pyrometer.record.torch_run import PHASES

if TYPE_CHECKING:
    from pyrometer.capture.torch_watch import TorchWatch

PHASE_NUMBERS = {name: number for number, name in enumerate(PHASES, start=1)}
"""By the watch's numbers; 0 is what is in no phase."""

# In each of these the phase stays what it is when such a function is called.
_KEPT_BY = {
    "data": ("data",),
    "copies": PHASES,
    "forward": ("data", "copies", "forward", "loss", "backward"),
    "loss": ("data", "forward", "loss", "backward"),
    "backward": ("data", "forward", "loss", "backward"),
    "clipping": ("data", "forward", "loss", "backward"),
    "clearing": ("data", "forward", "loss", "backward"),
}

_LOSS_FUNCTIONS = (
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "cross_entropy",
    "ctc_loss", "gaussian_nll_loss", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss",
    "margin_ranking_loss", "mse_loss", "multi_margin_loss", "multilabel_margin_loss",
    "multilabel_soft_margin_loss", "nll_loss", "poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss",
    "triplet_margin_loss", "triplet_margin_with_distance_loss",
)  # fmt: skip
_CLIPPING_FUNCTIONS = ("clip_grad_norm_", "clip_grad_value_")
_COPYING_METHODS = ("to", "cuda")

_NO_EVENT, _FETCH, _BACKWARD = 0, 1, 2
"""What a function means in the loop that the core follows by itself."""


_Told = tuple[Callable[[Any], object] | None, Callable[..., object] | None]


def kept_by(phase: str) -> int:
    """The phases, as bits by number, in which a function of this one changes nothing."""
    return sum(1 << PHASE_NUMBERS[name] for name in _KEPT_BY[phase])


def replace_functions(patches: Patches, watch: Watch, told: "TorchWatch", torch: Any) -> None:
    """Put our wrappers in the place of torch's functions; one that is not there is noted and left out."""
    loading = sys.modules["torch.utils.data.dataloader"]
    clipping = sys.modules["torch.nn.utils.clip_grad"]
    places = [
        ("data", loading.DataLoader, "__iter__", told.fetch_begun, told.loader_started, _NO_EVENT),
        ("data", loading._BaseDataLoaderIter, "__next__", told.fetch_begun, told.fetched, _FETCH),  # noqa: SLF001
        ("backward", torch.autograd, "backward", None, told.backward_ended, _BACKWARD),
        ("backward", torch.autograd, "grad", None, told.backward_ended, _BACKWARD),
        ("clearing", torch.optim.Optimizer, "zero_grad", None, None, _NO_EVENT),
        ("clearing", torch.nn.Module, "zero_grad", None, None, _NO_EVENT),
        *(("loss", torch.nn.functional, name, None, None, _NO_EVENT) for name in _LOSS_FUNCTIONS),
        *(
            ("clipping", owner, name, None, None, _NO_EVENT)
            for owner in (torch.nn.utils, clipping)
            for name in _CLIPPING_FUNCTIONS
        ),
        *(("copies", torch.Tensor, name, None, None, _NO_EVENT) for name in _copying_methods(torch)),
    ]
    for phase, owner, name, begun, ended, event in places:
        try:
            theirs = getattr(owner, name)
            told_too: _Told = (begun, ended)
            if told.gpu is not None:
                told_too = _tell_gpu(told.gpu, phase, *told_too)
            ours = watch.phased(theirs, PHASE_NUMBERS[phase], kept_by(phase), *told_too, event)
            patches.replace(owner, name, ours)
        except Exception as error:  # noqa: BLE001 - the other phases are still worth having
            note_failure("torch", f"{phase} is not seen in {name}", error)
    call = watch.module_call(
        vars(torch.nn.Module)["__call__"],
        keeps=kept_by("forward"),
        describe=told.names.describe,
        root_begun=told.root_begun,
        root_ended=told.root_ended,
        measure=told.names.measure,
        tracks_gradients=torch.is_grad_enabled,
        sequence_number=torch._C._autograd._get_sequence_nr,  # noqa: SLF001
    )
    patches.replace(torch.nn.Module, "__call__", call)


def _tell_gpu(
    gpu: GpuWatch, phase: str, begun: Callable[[Any], object] | None, ended: Callable[..., object] | None
) -> "_Told":
    def begun_too(first: object) -> None:
        if begun is not None:
            begun(first)
        gpu.phase_began(phase)

    def ended_too(*told: Any) -> None:
        gpu.phase_ended(phase)
        if ended is not None:
            ended(*told)

    return begun_too, ended_too


def _copying_methods(torch: Any) -> tuple[str, ...]:
    """A build for the CPU alone has no other device to copy to."""
    backends = torch.backends
    has_devices = torch.version.cuda or torch.version.hip or backends.mps.is_built()
    return _COPYING_METHODS if has_devices else ()
