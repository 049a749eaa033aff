"""Pairs of runs with known differences, every figure of which can be worked out from this file."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from pyrometer.analysis.comparison.compare import Side, compare_sides
from pyrometer.analysis.comparison.model import Comparison
from pyrometer.analysis.identity import Comparability, Difference, Level, Weight
from pyrometer.analysis.observed import observe
from pyrometer.record.operators import Operator, Operators, OperatorWindow, Origin, Use
from pyrometer.record.run import GitState, Memory, Run
from pyrometer.record.torch_run import Module, TorchRun
from pyrometer.record.values import ScopeNode
from tests.report.sample_runs import main_strand, run_of
from tests.report.sample_runs import node as scope
from tests.sampled_runs import Seen, stack_samples
from tests.torch_runs import KB, MB, MS, US, call, group_of

COMPARABLE = Comparability(level=Level.COMPARABLE, differences=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Net:
    """A program that trains a net of two layers: what one step takes, in microseconds, and how often.

    By default a step of 10 ms: 1 data, 4 forward (2 + 1.2 + 0.6 in modules, 0.2 in the net itself),
    3.5 backward, 1.4 optimizer, 0.1 other.
    """

    steps: int = 20
    data_us: int = 1_000
    first_us: int = 2_000
    second_us: int = 1_200
    activation_us: int = 600
    net_us: int = 200
    backward_us: int = 3_500
    optimizer_us: int = 1_400
    other_us: int = 100
    first_calls: int = 1
    samples: int = 32
    second_name: str = "net.second"
    first_kb: int = 300
    peak_mb: int = 520
    started_at: str = "2026-01-02T03:04:05+00:00"
    commit: str = "0123456789abcdef0123456789abcdef01234567"

    @property
    def forward_us(self) -> int:
        """All of the net."""
        return self.first_us + self.second_us + self.activation_us + self.net_us


def net_run(net: Net | None = None) -> Run:
    """The run of such a program: steps, modules, an operator window, scopes and samples."""
    net = net or Net()
    step = {
        "data": net.data_us * US,
        "forward": net.forward_us * US,
        "backward": net.backward_us * US,
        "optimizer": net.optimizer_us * US,
        "other": net.other_us * US,
    }
    group = group_of(
        "training",
        "Adam",
        [step] * net.steps,
        samples=net.samples,
        phase_bytes={"forward": (net.first_kb + 100) * KB, "backward": 600 * KB},
    )
    torch = TorchRun(
        torch_version="2.13.0+cpu",
        intra_op_threads=2,
        groups=(group,),
        warmup=3,
        calls=(main_strand(*_module_calls(net)),),
        modules=(Module(name="net", kind="Net", parameters=10, parameter_bytes=40),),
        backward_passes=net.steps,
        operators=_operators(net),
    )
    run = run_of(
        main_strand(*_scopes(net, sum(step.values()))),
        profiled_ns=group.total_ns + 100 * MS,
        git=GitState(commit=net.commit, branch="main", dirty=False),
    )
    return msgspec.structs.replace(
        run,
        torch=torch,
        memory=Memory(peak_bytes=net.peak_mb * MB),
        samples=stack_samples(*_stacks(net)),
        started_at=net.started_at,
    )


def _module_calls(net: Net) -> tuple[ScopeNode, ...]:
    steps = net.steps
    whole_kb = net.first_kb + 100
    return (
        call("forward", None, steps, steps * net.forward_us * US, steps * whole_kb * KB),
        call("net", 0, steps, steps * net.forward_us * US, steps * whole_kb * KB),
        call("net.first", 1, steps * net.first_calls, steps * net.first_us * US, steps * net.first_kb * KB),
        call(net.second_name, 1, steps, steps * net.second_us * US, steps * 60 * KB),
        call("net.activation", 1, steps, steps * net.activation_us * US, steps * 40 * KB),
        call("backward", None, steps, steps * net.backward_us * US, steps * 600 * KB),
    )


def _operators(net: Net) -> Operators:
    """Two steps, in which multiplying takes what the layers take, and the rest of the step is in none."""
    layers_ns = 2 * (net.first_us + net.second_us) * US
    step_ns = (net.data_us + net.forward_us + net.backward_us + net.optimizer_us + net.other_us) * US
    operators = (
        Operator(name="aten::addmm", calls=2 * (net.first_calls + 1), total_ns=layers_ns, self_ns=layers_ns),
        Operator(name="aten::relu", calls=2, total_ns=800 * US, self_ns=800 * US),
    )
    window = OperatorWindow(
        kind="training",
        label="Adam",
        first_step=5,
        steps=2,
        total_ns=2 * step_ns,
        covered_ns=layers_ns + 800 * US,
        thread_covered_ns=layers_ns + 800 * US,
        events=sum(operator.calls for operator in operators),
        operators=operators,
        origins=(Origin("call", "forward", None, None),),
        uses=tuple(Use(at, 0, operator.calls, operator.self_ns) for at, operator in enumerate(operators)),
    )
    return Operators(asked_steps=2, windows=(window,))


def _scopes(net: Net, step_ns: int) -> tuple[ScopeNode, ...]:
    """All steps in one scope, in which each step loads, and saves once."""
    return (
        scope("train", None, [net.steps * step_ns]),
        scope("load", 0, [net.data_us * US] * net.steps),
        scope("save", 0, [5 * MS]),
    )


def _stacks(net: Net) -> tuple[Seen, ...]:
    """A tenth of a second of samples for each millisecond of a step."""
    return (
        Seen(stack="<module>:80;train:40;load:12", python=_tens(net.data_us)),
        Seen(stack="<module>:80;train:41;Linear.forward:125", native=_tens(net.forward_us), leaf=0),
        Seen(stack="<module>:80;train:42;backward:9", python=_tens(net.backward_us)),
        Seen(stack="<module>:80;train:43;step:21", python=_tens(net.optimizer_us)),
    )


def _tens(duration_us: int) -> int:
    return duration_us // 100 * 10


def side_of(name: str, *runs: Run) -> Side:
    """These runs as one side."""
    return Side(name=name, runs=tuple(map(observe, runs)))


def compare(
    before: Run | Sequence[Run], after: Run | Sequence[Run], comparability: Comparability = COMPARABLE
) -> Comparison:
    """Both sides compared; on the same machine, unless told."""
    sides = [(side,) if isinstance(side, Run) else tuple(side) for side in (before, after)]
    return compare_sides(side_of("A", *sides[0]), side_of("B", *sides[1]), comparability)


def difference(name: str, weight: Weight, *, accepted: bool = False) -> Difference:
    """A fact that differs."""
    return Difference(
        name=name,
        before="1",
        after="2",
        weight=weight,
        sentence=f"{name}: 1 (before), 2 (after)",
        accepted=accepted,
    )


def many_runs(net: Net, *, runs: int = 8, at_second: int = 0, spread_us: int = 10) -> tuple[Run, ...]:
    """So many processes, a minute from one to the next, whose forward phases differ a little.

    The runs of two sides take turns when they start at different seconds.
    """
    return tuple(
        net_run(
            replace(
                net,
                net_us=net.net_us + spread_us * (index % 4),
                started_at=f"2026-01-02T03:{index:02}:{at_second:02}+00:00",
            )
        )
        for index in range(runs)
    )
