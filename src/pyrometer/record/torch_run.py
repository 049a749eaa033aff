"""What a run says of the PyTorch work in it: steps and their phases, modules, data loading, generation.

Times are integers in nanoseconds on the host's clock, sizes integers in bytes. What was not
measured is ``None``, never 0. Everything is bounded, whatever the length of the run.
"""

from typing import Annotated

import msgspec

from pyrometer.record.operators import Operators
from pyrometer.record.values import Bucket, BucketCalls, Count, Nanoseconds, Strand, Value

PHASES = ("data", "copies", "forward", "loss", "backward", "clipping", "optimizer", "clearing")
"""The phases found without a word from the program, in the order a step goes through them."""

OTHER = "other"
"""The part of a step in no phase."""

FORWARD_WITHOUT_GRADIENTS = "forward without gradients"
"""Top node of ``TorchRun.calls`` for root modules called while no gradients are recorded."""

RECOMPUTED_FORWARD = "recomputed forward"
"""Node of ``TorchRun.calls`` under ``backward``: modules that a backward pass calls again."""

MAX_FIRST_STEPS = 256
MAX_SAMPLED_STEPS = 512
MAX_GROUPS = 16
MAX_STEP_PHASES = 32
MAX_MODULES = 20_000
MAX_LOADERS = 16
MAX_OPTIMIZERS = 16
MAX_POSITION_BINS = 128

OPTIMIZER_IMPLEMENTATIONS = ("fused", "foreach", "for-loop")
"""How an optimizer of torch's changes its parameters: all in one kernel, each operation on all of them
at once, or one after the other."""


class Step(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One step. ``phase_ns`` follows the group's ``phases``, and sums to ``duration_ns`` exactly."""

    index: Count
    """Counted over all groups, from 0."""
    started_ns: Nanoseconds
    """Since recording began: the end of the step before."""
    duration_ns: Nanoseconds
    phase_ns: Annotated[tuple[Nanoseconds, ...], msgspec.Meta(max_length=MAX_STEP_PHASES)]
    samples: Count | None = None
    tokens: Count | None = None
    allocated_bytes: Count | None = None
    """Of torch's CPU tensors, on the thread that made the step."""
    worker_ns: Count | None = None
    """What the loader's worker processes took to make the step's batches."""


class StepGroup(Value, frozen=True, kw_only=True):
    """Steps of one kind: all counts and sums are exact, over every step of the group.

    ``first`` holds the first steps one by one, ``sampled`` an unbiased choice of all later ones.
    """

    kind: str
    """``training`` (an optimizer stepped), ``forward`` (only forward passes, batch to batch or root
    call to root call), ``generation`` (a forward pass for each token) or ``marked`` (by the program)."""
    label: str
    """What made it: the optimizers that stepped (``Adam``, ``Adam + SGD``), the root modules called,
    or the name the program gave."""
    phases: Annotated[tuple[str, ...], msgspec.Meta(max_length=MAX_STEP_PHASES)]
    """The phases that occurred, ``other`` last and always there."""
    steps: Count
    total_ns: Nanoseconds
    phase_ns: Annotated[tuple[Nanoseconds, ...], msgspec.Meta(max_length=MAX_STEP_PHASES)]
    """By phase; sums to ``total_ns`` exactly."""
    phase_bytes: Annotated[tuple[Count, ...], msgspec.Meta(max_length=MAX_STEP_PHASES)] | None = None
    """Bytes of torch's CPU tensors allocated in each phase."""
    phase_allocations: Annotated[tuple[Count, ...], msgspec.Meta(max_length=MAX_STEP_PHASES)] | None = None
    min_ns: Nanoseconds
    max_ns: Nanoseconds
    buckets: tuple[tuple[Bucket, BucketCalls], ...]
    """Durations, as in ``ScopeNode.buckets``; ``steps`` in all."""
    batches: Count = 0
    """Batches fetched from loaders."""
    forward_calls: Count = 0
    """Calls of root modules."""
    grad_forward_calls: Count = 0
    """Those of them made while gradients were recorded."""
    backward_passes: Count = 0
    samples: Count | None = None
    """None when any step's batch size could not be told."""
    tokens: Count | None = None
    worker_ns: Nanoseconds | None = None
    first: Annotated[tuple[Step, ...], msgspec.Meta(max_length=MAX_FIRST_STEPS)] = ()
    sampled: Annotated[tuple[Step, ...], msgspec.Meta(max_length=MAX_SAMPLED_STEPS)] = ()


class Module(Value, frozen=True, kw_only=True):
    """One ``nn.Module`` of the program, under the name its nodes have in ``TorchRun.calls``."""

    name: str
    """Qualified, from the root: ``model.layers.0.attn``."""
    kind: str
    """Its class."""
    parameters: Count = 0
    """Of it and all modules below; one shared by several is counted once."""
    parameter_bytes: Count = 0
    dtype: str | None = None
    """The one floating-point type of those parameters (``float32``), ``mixed`` where they are of
    several; None without any."""
    measured_calls: Count = 0
    """Forward calls whose output sizes and FLOPs were worked out; chosen at random with their step."""
    input_bytes: Count | None = None
    """Of the tensors it was given, over the measured calls."""
    input_dtype: str | None = None
    """The one floating-point type of the tensors that the last measured call was given, ``mixed``
    where they were of several; None without any."""
    output_bytes: Count | None = None
    """Over the measured calls."""
    flops: Count | None = None
    """Floating-point operations of the forward pass over the measured calls, by formula, without
    those of modules below. None: there is no formula for this class."""
    gradient_products: Count | None = None
    """Over the measured calls: how many of its two products each leaves to the backward pass, that for
    the gradients of its inputs and that for those of its own parameters. None while none are recorded."""
    hidden: str | None = None
    """``compiled`` or ``scripted``: what runs inside cannot be seen."""


class OptimizerFacts(Value, frozen=True, kw_only=True):
    """One optimizer of the program, as it was when its first step had ended."""

    name: str
    """As in the labels of step groups: its class, with a number where several lived at once."""
    kind: str
    """Its class."""
    implementation: str | None = None
    """One of ``OPTIMIZER_IMPLEMENTATIONS``; None where that cannot be told: of a class that is not
    torch's own, or that has no such choice, or where its groups of parameters differ."""
    tensors: Count = 0
    """Parameters as tensors."""
    parameters: Count = 0
    """The elements of those."""
    steps: Count = 0
    """Its steps, over all that had this name; in a window, those of the window."""


class Loader(Value, frozen=True, kw_only=True):
    """All iterators of the ``DataLoader``s over one kind of dataset with as many workers."""

    name: str
    """``DataLoader(ImageFolder)``."""
    workers: Count
    """0: the loader works in the program's own process."""
    iterators: Count
    """How often an iteration began."""
    start_ns: Nanoseconds
    """Making the iterators, which starts the workers."""
    worker_starts: Count | None = None
    """How many of the iterations started workers; the others had them from one before. None without
    workers, and in records from before it was counted."""
    batches: Count
    wait_ns: Nanoseconds
    """What the program waited in ``next()``."""
    timed_batches: Count = 0
    """Batches whose making was timed; the figures below are over these."""
    work_ns: Nanoseconds | None = None
    """Making the batches, in the workers or in the program's own process."""
    collate_ns: Nanoseconds | None = None
    """The part of it spent putting samples together."""
    transform_ns: Nanoseconds | None = None
    """The part of it spent in the dataset's ``transform``; None when it has none that can be timed."""
    ready_batches: Count | None = None
    """Batches that were ready when asked for."""
    queued_batches: Count | None = None
    """Summed over all requests: how many finished batches lay waiting."""
    first_batch_ns: Nanoseconds | None = None
    """Summed over iterators: from its start to its first batch."""


class PositionBin(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Tokens made at context lengths ``low`` to ``high`` (both included)."""

    low: Count
    high: Count
    tokens: Count
    total_ns: Nanoseconds
    allocated_bytes: Count | None = None


class Generation(Value, frozen=True, kw_only=True):
    """Sequences made token by token, one forward pass each."""

    label: str
    """The root module."""
    sequences: Count
    """Prompts continued: calls in which all of a batch is made side by side."""
    passes: Count
    """Forward passes, one a token position."""
    tokens: Count
    """Tokens made, over the whole batch."""
    total_ns: Nanoseconds
    prompt_tokens: Count
    first_token_ns: Nanoseconds
    """Summed over sequences: from the start of the first forward pass, or of ``generate``, to its end."""
    cached_passes: Count
    """Passes that got only the newest token, the rest from a key-value cache."""
    allocated_bytes: Count | None = None
    positions: Annotated[tuple[PositionBin, ...], msgspec.Meta(max_length=MAX_POSITION_BINS)] = ()


class Compilation(Value, frozen=True, kw_only=True):
    """What ``torch.compile`` did."""

    graphs: Count
    graph_breaks: Count
    recompilations: Count
    compile_ns: Nanoseconds
    """Wall time spent compiling."""
    break_reasons: tuple[tuple[str, Count], ...] = ()
    """The most frequent ones, shortened to their first line."""


class Gpu(Value, frozen=True, kw_only=True):
    """The GPU's side of the run."""

    name: str
    current_bytes: Count | None = None
    peak_bytes: Count | None = None
    reserved_bytes: Count | None = None
    utilisation_percent: float | None = None
    """Average over the run, by NVML."""
    phase_device_ns: dict[str, Nanoseconds] = msgspec.field(default_factory=dict)
    """By CUDA events, for the phases that could be timed."""
    phase_peak_bytes: dict[str, Count] = msgspec.field(default_factory=dict)


class TorchRun(Value, frozen=True, kw_only=True):
    """The PyTorch work of a run."""

    torch_version: str
    intra_op_threads: Count | None = None
    gpu: Gpu | None = None
    """None: no GPU."""
    groups: Annotated[tuple[StepGroup, ...], msgspec.Meta(max_length=MAX_GROUPS)] = ()
    warmup: Count | None = None
    """Steps to leave out at the start of each group, if the user said how many."""
    window: tuple[Count, Count | None] | None = None
    """The steps that were recorded (first, first not), if the user chose some."""
    max_steps: Count | None = None
    """After so many the program was to end, if the user said so."""
    calls: tuple[Strand, ...] = ()
    """What torch was asked to do, as trees: at the top the phases, under ``forward``, ``forward
    without gradients``, ``loss`` and ``backward`` the modules by qualified name. ``backward`` has
    modules only from the passes in which they were timed."""
    modules: Annotated[tuple[Module, ...], msgspec.Meta(max_length=MAX_MODULES)] = ()
    optimizers: Annotated[tuple[OptimizerFacts, ...], msgspec.Meta(max_length=MAX_OPTIMIZERS)] = ()
    """In the order of their first steps."""
    backward_passes: Count = 0
    timed_backward_passes: Count = 0
    """Chosen at random: those in which each module's share was timed."""
    timed_backward_ns: Nanoseconds = 0
    """How long those took, all together."""
    loaders: Annotated[tuple[Loader, ...], msgspec.Meta(max_length=MAX_LOADERS)] = ()
    generations: tuple[Generation, ...] = ()
    compilation: Compilation | None = None
    operators: Operators | None = None
    """None: not asked for."""
