"""A run below the limits of its machine, every figure of which can be worked out from this file."""

import msgspec

from pyrometer.record.run import Run
from pyrometer.record.torch_run import Module, TorchRun
from tests.limits import make_limits
from tests.report.sample_runs import main_strand
from tests.torch_runs import MB, MS, US, call, group_of, torch_run


def _module(
    name: str, kind: str, *, flops: int | None, given: int, gives: int, parameters: int = 0, products: int = 1
) -> Module:
    """All figures of one call; two were measured."""
    return Module(
        name=f"net.{name}",
        kind=kind,
        parameters=parameters,
        parameter_bytes=4 * parameters,
        measured_calls=2,
        input_bytes=2 * given,
        output_bytes=2 * gives,
        flops=None if flops is None else 2 * flops,
        gradient_products=2 * products,
    )


def placed_run() -> Run:
    """Steps of 10 ms on two threads, below 200 GFLOP/s and 36 GB/s; one module held back by each thing.

    conv does 150 GFLOP/s, norm moves 25 GB/s, act moves 3.2 GB/s in 20 µs, head does 20 GFLOP/s, own has
    no formula. Forward: 310 MFLOP in 4 ms. Backward: conv, the first, has only its weights' gradient.
    """
    step = {"forward": 4 * MS, "backward": 5 * MS, "optimizer": 600 * US, "other": 400 * US}
    calls = main_strand(
        call("forward", None, 100, 400 * MS),
        call("net", 0, 100, 400 * MS),
        call("net.conv", 1, 100, 200 * MS),
        call("net.norm", 1, 100, 80 * MS),
        call("net.act", 1, 100, 2 * MS),
        call("net.head", 1, 100, 50 * MS),
        call("net.own", 1, 100, 30 * MS),
        call("backward", None, 100, 500 * MS),
        call("optimizer", None, 100, 60 * MS),
    )
    net = Module(name="net", kind="Net", parameters=50_000, parameter_bytes=200_000, measured_calls=2)
    torch = TorchRun(
        torch_version="2.13.0+cpu",
        intra_op_threads=2,
        groups=(group_of("training", "SGD", [step] * 100, samples=32),),
        calls=(calls,),
        modules=(
            net,
            _module("conv", "Conv2d", flops=300_000_000, given=MB, gives=MB, parameters=25_000),
            _module("norm", "LayerNorm", flops=0, given=10 * MB, gives=10 * MB),
            _module("act", "ReLU", flops=0, given=32_000, gives=32_000),
            _module("head", "Linear", flops=10_000_000, given=MB, gives=MB, parameters=25_000, products=2),
            _module("own", "Own", flops=None, given=1_000, gives=1_000),
        ),
        backward_passes=100,
    )
    return msgspec.structs.replace(torch_run(torch), limits=make_limits())
