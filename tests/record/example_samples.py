"""Stack samples for tests: written out by hand, or any valid ones at all."""

from collections.abc import Sequence

from hypothesis import strategies as st

from pyrometer.record.samples import Function, NativeFunction, Observation, StackNode, StackSamples
from pyrometer.record.values import Strand


def make_samples() -> StackSamples:
    """Stacks of two threads: ``main`` calls ``step``, which runs native code; another waits.

    Of the 10 samples of 1,000 ns, 2 are of Python, 3 of native code and 5 of waiting.
    """
    return StackSamples(
        samples_per_s=100.0,
        samples=10,
        dropped=1,
        sampler_cpu_ns=40,
        threads=("MainThread", "loader"),
        functions=(
            Function("<module>", "/home/user/train.py", 1),
            Function("Trainer.step", "/home/user/train.py", 12),
            Function("Linear.forward", "/usr/lib/python3/site-packages/torch/nn/modules/linear.py", 120),
            Function("wait", "/usr/lib/python3.11/threading.py", 288),
        ),
        native_functions=(NativeFunction("sgemm", "/opt/libblas.so"), NativeFunction(None, "/opt/libc.so")),
        nodes=(
            StackNode(None, 0, 30),
            StackNode(0, 1, 14),
            StackNode(1, 2, 125),
            StackNode(None, 3, None),
        ),
        observations=(
            Observation(1, 0, None, None, None, 2, 0, 0, 2_000, 2_000),
            Observation(2, 0, (0, 0), (0, 1), 0, 3, 0, 3, 3_000, 2_990),
            Observation(3, 1, None, None, None, 5, 5, 0, 5_000, 0),
        ),
    )


_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_names = st.sampled_from(["step", "forward", "<module>", ""]) | _text
_times_ns = st.integers(0, 10**12)
_files = _text | st.sampled_from(
    [
        "/home/user/train.py",
        "/usr/lib/python3.11/json/decoder.py",
        "<frozen importlib._bootstrap>",
        "<string>",
        "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py",
    ]
)


@st.composite
def any_places(draw: st.DrawFn, strands: Sequence[Strand]) -> tuple[int, int] | None:
    """A node of the strands, or none."""
    possible = [index for index, strand in enumerate(strands) if strand.nodes]
    if not possible or draw(st.booleans()):
        return None
    strand = draw(st.sampled_from(possible))
    return strand, draw(st.integers(0, len(strands[strand].nodes) - 1))


@st.composite
def any_observations(
    draw: st.DrawFn, scopes: Sequence[Strand], calls: Sequence[Strand], *, nodes: int
) -> Observation:
    """An observation at one of the nodes, on one of two threads."""
    waiting, native, python = (draw(st.integers(0, 50)) for _ in range(3))
    wall_ns = draw(_times_ns)
    return Observation(
        stack=draw(st.integers(0, nodes - 1)),
        thread=draw(st.integers(0, 1)),
        scope=draw(any_places(scopes)),
        call=draw(any_places(calls)),
        leaf=draw(st.none() | st.integers(0, 1)),
        samples=waiting + native + python,
        waiting=waiting,
        native=native,
        wall_ns=wall_ns,
        cpu_ns=draw(st.integers(0, wall_ns)),
    )


@st.composite
def any_samples(draw: st.DrawFn, scopes: Sequence[Strand] = (), calls: Sequence[Strand] = ()) -> StackSamples:
    """Any stack samples that hold together with these strands; functions that call themselves among them."""
    functions = draw(
        st.lists(
            st.builds(Function, name=_names, file=_files, first_line=st.integers(0, 500)),
            min_size=1,
            max_size=4,
        )
    )
    size = draw(st.integers(0, 12))
    nodes = tuple(
        StackNode(
            parent=draw(st.none() | st.integers(0, index - 1)) if index else None,
            function=draw(st.integers(0, len(functions) - 1)),
            line=draw(st.none() | st.integers(0, 500)),
        )
        for index in range(size)
    )
    observations = draw(st.lists(any_observations(scopes, calls, nodes=size), max_size=8)) if size else []
    return StackSamples(
        samples_per_s=draw(st.floats(1, 1e6)),
        samples=sum(observation.samples for observation in observations),
        dropped=draw(_times_ns),
        sampler_cpu_ns=draw(_times_ns),
        threads=(draw(_text), "MainThread"),
        functions=tuple(functions),
        native_functions=(NativeFunction(draw(st.none() | _text), draw(_text)), NativeFunction("sgemm", "")),
        nodes=nodes,
        observations=tuple(observations),
    )
