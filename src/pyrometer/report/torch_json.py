"""What a run says of its PyTorch work and its memory, as JSON.

``torch`` is ``null`` when the program did not use PyTorch. Its keys:

``torch_version``, ``intra_op_threads``, ``window``
    ``window``: the steps that were recorded (first, first not; null for open), if the user chose some.
``headline``
    Of the main group: ``step_ns`` (steady mean), ``samples_per_second``, ``tokens_per_second``,
    ``peak_host_bytes``, ``peak_gpu_bytes`` (null: no GPU), ``biggest_phase``. null without steps.
``main_group``
    Its index in ``groups``.
``groups``
    Steps of one kind: ``label``, ``nature`` (``kind``: training, evaluation, inference, generation or
    marked; ``trains``, ``optimizers``, ``accumulates``: batches to one step or null, ``closure``),
    ``steps``, ``total_ns``;
    ``warmup``: ``steps``, ``total_ns``, ``end`` (given, steady, not reached, too short), ``asked_steps``;
    ``steady``: the steps after it, with which it makes ``steps`` and ``total_ns``; ``steps``,
    ``total_ns``, ``mean_ns``, ``min_ns``, ``p50_ns``, ``p95_ns``, ``max_ns``, ``extremes_are_exact``,
    ``samples``, ``tokens``, ``samples_per_second``, ``tokens_per_second``, ``steps_per_second``,
    ``batches_per_second``, ``allocated_bytes_per_step``, ``worker_ns_per_step``;
    ``phases``: of the steady steps, ``name``, ``total_ns``, ``mean_ns``, ``share`` (they add up to the
    steps and to 1), ``allocated_bytes_per_step``, ``allocations_per_step`` (over all steps);
    ``baseline_phases``: the same folded to data, forward, backward, optimizer and other;
    ``first_step``: ``duration_ns``, ``extra_ns`` and ``ratio`` against the steady mean;
    ``batches_per_step``, ``forward_calls_per_step``, ``backward_passes_per_step``,
    ``allocations_per_step``, ``grad_forward_share``, ``records_unused_gradients``, ``steady_from_ns``;
    ``series``: the first steps and a choice of the later ones, ``index``, ``started_ns``,
    ``duration_ns``, ``phase_ns`` (as ``phases``), ``samples``, ``tokens``, ``allocated_bytes`` and
    ``worker_ns``.
``hotspots``
    Largest share first: ``rank``, ``kind`` (phase, module), ``name``, ``module_kind``, ``ns_per_step``,
    ``share``, ``priority`` (HIGH, MEDIUM, LOW), ``causes``, ``to_try``.
``strengths``
    ``kind``, ``subject``, ``value``, ``limit`` and the whole as ``text``.
``modules``
    ``steps`` and ``step_ns`` are what ``ns_per_step`` and ``share`` are over; ``backward_passes``,
    ``timed_backward_passes``, ``parameters``, ``parameter_bytes``, ``hidden`` (names).
    ``rows``, one a module: ``name``, ``kind``, ``places``; ``forward``, ``without_gradients``,
    ``backward`` (over the timed passes) and ``recomputed``, each with ``calls``, ``total_ns``,
    ``self_ns``, ``allocated_bytes``, ``self_allocated_bytes``; ``backward_ns_per_pass``,
    ``backward_self_ns_per_pass``, ``ns_per_step``, ``self_ns_per_step``, ``share``, ``self_share``,
    ``parameters``, ``parameter_bytes``, ``output_bytes_per_call``, ``flops_per_call``,
    ``flops_are_at_least``, ``hidden`` (compiled, scripted or null).
    ``tree``, one a place, a parent before its children: ``name``, ``parent`` (index in this list),
    ``depth``, ``kind``, the four passes, ``ns_per_step``, ``share``, ``hidden``; ``per_step``: ``calls``,
    ``forward_ns`` (with what the backward pass computed again), ``forward_self_ns``, ``backward_ns``
    (null when no pass was timed), ``backward_self_ns``, ``allocated_bytes``.
``roofline``
    null where the limits of the machine are not known. ``roofs`` (``threads``, ``precision``,
    ``flops_per_s``, ``flops_source``, ``bytes_per_s``, ``bytes_source``, ``contended``; null with a
    ``reason`` where nothing can be placed), ``intra_op_threads``; ``step``, ``phases``, ``modules``
    (that call no other, in their forward passes) and ``operators`` (in a step of the first window), each
    with its ``work`` (``name``, ``kind``, ``calls``,
    ``duration_ns``, ``flops``, ``moved_bytes``, ``at_least``, ``estimated``, ``unknown``), ``bound``
    (compute-bound, memory-bound, overhead-bound, not placed), ``reason`` (why not placed), ``intensity``,
    ``flops_per_s``, ``bytes_per_s``, ``compute_share``, ``memory_share``, ``roof_share``.
``loaders``
    ``name``, ``workers``, ``batches``, ``iterators``, ``worker_starts``,
    ``start_ns_per_iterator``, ``first_batch_ns_per_iterator``, ``wait_ns``, ``wait_ns_per_batch``,
    ``wait_share``, ``timed_batches``, ``work_ns_per_batch`` and its parts ``fetch_``, ``transform_`` and
    ``collate_ns_per_batch``, ``worker_busy_share``, ``ready_share``, ``average_queue``, ``verdict``
    (loader too slow, loader idle, balanced, cannot tell).
``generations``
    ``label``, ``sequences``, ``passes``, ``tokens``, ``total_ns``, ``tokens_per_second``,
    ``ns_per_token``, ``bytes_per_token``, ``first_token_ns``, ``prompt_tokens_per_sequence``,
    ``cache``, ``cached_share``, ``positions`` (``low``, ``high``, ``tokens``, ``ns_per_token``,
    ``bytes_per_token``), ``growth`` (``verdict``, ``first_quarter_ns``, ``last_quarter_ns``, ``ratio``,
    ``slope_ns_per_position``).
``operators``
    null where not asked for. ``asked_steps``, ``left_out_steps`` (slowed, and in no group), ``reason`` (why
    there is no window), ``windows``, each with ``kind``, ``label``, ``first_step``, ``steps``, ``events``,
    ``step_ns``, ``slowdown`` (to a steady step), ``covered_ns_per_step``, ``outside_ns_per_step`` (in no
    operator), ``outside_share``; ``rows``, largest self time first: ``name``, ``calls_per_step``,
    ``total_ns_per_step``, ``self_ns_per_step``, ``share``, ``flops_per_step`` (null: not counted),
    ``flops_per_second``, ``input_bytes_per_step``, ``device_ns_per_step`` (null: no GPU), ``shapes``
    (``shapes``, ``calls`` in one step), ``origins`` (``kind``: call, backward, accumulation; ``phase``,
    ``module``, ``scope``, ``calls_per_step``, ``self_ns_per_step``, ``share`` of the operator).
``compilation``, ``gpu``
    As in the run file, with every key present; null without.

``memory`` is ``null`` when it was not recorded: ``peak_bytes``, ``first_bytes``, ``last_bytes``,
``growth_bytes_per_second``, ``growth_bytes_per_step``, ``growth_samples``, ``series``.
"""

import dataclasses
from enum import Enum
from types import NoneType
from typing import Any

import msgspec

from pyrometer.analysis.modules import ModuleTable
from pyrometer.analysis.steps import GroupResult, fold_phases
from pyrometer.analysis.torch_results import TorchResults

_PLAIN = frozenset({NoneType, bool, int, float, str})
_NAMES: dict[type, tuple[str, ...]] = {}


def torch_content(torch: TorchResults) -> dict[str, Any]:
    """The ``torch`` section."""
    laid_out = {
        "groups": [_group(group) for group in torch.groups],
        "strengths": [{**_fields(strength), "text": strength.text} for strength in torch.strengths],
        "modules": _modules(torch.modules),
    }
    # Not all fields first: modules within modules can be deeper than Python's stack.
    content = {
        name: laid_out[name] if name in laid_out else as_json(getattr(torch, name))
        for name in _names_of(torch)
        if name != "main"
    }
    return {**content, "main_group": None if torch.main is None else torch.groups.index(torch.main)}


def as_json(value: Any) -> Any:
    """Values of the record and of the analysis as JSON has them, every field present."""
    # A large model has a million figures.
    if type(value) in _PLAIN:
        return value
    if isinstance(value, tuple | list):
        return [as_json(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    return value if isinstance(value, dict) else _fields(value)


def _fields(value: Any, *, leave_out: tuple[str, ...] = ()) -> dict[str, Any]:
    return {name: as_json(getattr(value, name)) for name in _names_of(value) if name not in leave_out}


def _names_of(value: Any) -> tuple[str, ...]:
    """The fields of a value of the record, or of a dataclass."""
    if isinstance(value, msgspec.Struct):
        return value.__struct_fields__
    kind = type(value)
    if kind not in _NAMES:
        _NAMES[kind] = tuple(field.name for field in dataclasses.fields(value))
    return _NAMES[kind]


def _group(group: GroupResult) -> dict[str, Any]:
    return {**_fields(group), "baseline_phases": as_json(fold_phases(group.phases))}


def _modules(modules: ModuleTable) -> dict[str, Any]:
    content = _fields(modules, leave_out=("roots",))
    tree: list[dict[str, Any]] = []
    above: list[int] = []
    for depth, place in modules.walk():
        del above[depth:]
        parent = above[-1] if above else None
        above.append(len(tree))
        tree.append({"parent": parent, "depth": depth, **_fields(place, leave_out=("children",))})
    return {**content, "tree": tree}
