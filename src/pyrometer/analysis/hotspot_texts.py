"""What is said of hotspots and strengths: likely causes, what to try, and the evidence in words."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Likely causes of a hotspot, and what to try against them; not measured on this program."""

    causes: tuple[str, ...]
    to_try: tuple[str, ...]


PHASE_ADVICE = {
    "data": Advice(
        causes=(
            "batches are made slower than the steps use them",
            "decoding, transforms or collating per sample",
        ),
        to_try=(
            "more loader workers (num_workers), kept between epochs (persistent_workers)",
            "do the work that is the same in each epoch once, beforehand",
        ),
    ),
    "copies": Advice(
        causes=("batches are copied or converted between devices or types in each step",),
        to_try=(
            "pin_memory in the loader and non_blocking copies",
            "make tensors with their final type and on their device",
        ),
    ),
    "forward": Advice(
        causes=("the model's own computation", "many small operations, each with a fixed cost"),
        to_try=(
            "look at the modules with the most self time",
            "torch.compile, a larger batch, or a lower precision (bfloat16)",
        ),
    ),
    "loss": Advice(
        causes=("a loss over large outputs", "a loss written as many small operations"),
        to_try=("torch's fused losses on logits", "fewer intermediate tensors"),
    ),
    "backward": Advice(
        causes=("gradients cost about twice the forward pass", "gradients of parts that are not trained"),
        to_try=(
            "requires_grad off, or no_grad, where nothing is trained",
            "torch.compile, or a lower precision (bfloat16)",
        ),
    ),
    "clipping": Advice(
        causes=("norms computed one parameter at a time", "many small parameters"),
        to_try=("clip_grad_norm_ with foreach=True", "clip once per optimizer step"),
    ),
    "optimizer": Advice(
        causes=(
            "many small parameters, each updated by its own operations",
            "a small model or a small batch",
        ),
        to_try=(
            "fused=True or foreach=True in the optimizer",
            "a larger batch, or gradients accumulated over several",
        ),
    ),
    "clearing": Advice(
        causes=("gradients are filled with zeros instead of dropped",),
        to_try=("zero_grad(set_to_none=True)", "clear once per optimizer step"),
    ),
    "other": Advice(
        causes=(
            "logging, metrics, checkpoints or .item() between the phases",
            "Python's own work: preparing inputs, garbage collection",
        ),
        to_try=(
            "log and synchronise every few steps only",
            "mark suspects with pyrometer.scope to see which it is",
        ),
    ),
}

OWN_PHASE_ADVICE = Advice(
    causes=("the program's own phase: what runs in it",),
    to_try=("mark its parts with pyrometer.scope to see which it is",),
)

MODULE_ADVICE = Advice(
    causes=("its own operations, without those of the modules below",),
    to_try=("fewer or fused operations in its forward (torch.compile)", "smaller sizes or a lower precision"),
)

HIDDEN_MODULE_ADVICE = Advice(
    causes=("compiled or scripted code, whose inside cannot be seen",),
    to_try=("run it once uncompiled to see its modules",),
)
