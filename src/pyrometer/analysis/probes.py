"""What a machine is known by beyond its name: figures measured on one of its threads.

"AMD EPYC" is sold at many speeds. On a shared machine with two cores, measured anew three times, these
figures stayed within 6 % of each other where they were not contended. Those on all threads moved by
100 % with the neighbours, the latency of a shared L3 by 20 %: neither is among them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from pyrometer.record.limits import Limits
from pyrometer.units import format_rate, three_digits

MOST_CHANGE = 1.10
"""Beyond this ratio two figures are of different machines."""

_OWN_LEVELS = ("L1", "L2", "memory")


class ProbeKind(Enum):
    """What a probe measures; two machines are the same only if they agree in each."""

    ARITHMETIC = "arithmetic"
    BANDWIDTH = "bandwidth"
    LATENCY = "latency"


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One figure, the best that was measured."""

    name: str
    kind: ProbeKind
    value: float
    text: str
    contended: bool
    """Whether something else seems to have used the machine meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probes:
    """The figures of one machine; those of other kernels are not comparable with them."""

    kernels_version: int
    probes: tuple[Probe, ...]

    @property
    def text(self) -> str:
        """All of them in words."""
        return ", ".join(f"{probe.name} {probe.text}" for probe in self.probes) or "none"


def probes_of(limits: Limits) -> Probes:
    """The figures a machine is known by."""
    return Probes(kernels_version=limits.kernels_version, probes=tuple(_probes(limits)))


def compare_probes(before: Probes, after: Probes) -> str | None:
    """Why two machines cannot be taken for the same one; None where they can.

    They can where no figure differs by more than 10 %, and one of each kind agrees. One that differs
    and was contended on either side says nothing.
    """
    if before.kernels_version != after.kernels_version:
        return f"measured by kernels of version {before.kernels_version} and {after.kernels_version}"
    agreeing, unsure, differing = set(), [], []
    others = {probe.name: probe for probe in after.probes}
    for probe in before.probes:
        other = others.get(probe.name)
        if other is None:
            continue
        if max(probe.value, other.value) <= MOST_CHANGE * min(probe.value, other.value):
            agreeing.add(probe.kind)
        elif probe.contended or other.contended:
            unsure.append(probe.name)
        else:
            differing.append(f"{probe.name} {probe.text} and {other.text}")
    if differing:
        return f"more than 10 % apart: {'; '.join(differing)}"
    missing = [kind.value for kind in ProbeKind if kind not in agreeing]
    if not missing:
        return None
    contended = f" ({', '.join(unsure)}: the machine was busy)" if unsure else ""
    return f"no figure that both have agrees in {', '.join(missing)}{contended}"


def _probes(limits: Limits) -> Iterator[Probe]:
    for rate in limits.flop_rates:
        if rate.kind == "fma" and rate.threads == 1:
            yield Probe(
                name=f"FMA {rate.precision}",
                kind=ProbeKind.ARITHMETIC,
                value=rate.best_flops_per_s,
                text=format_rate(rate.best_flops_per_s, "FLOP"),
                contended=rate.contended,
            )
    for bandwidth in limits.bandwidths:
        if bandwidth.kind == "triad" and bandwidth.threads == 1:
            yield Probe(
                name="triad",
                kind=ProbeKind.BANDWIDTH,
                value=bandwidth.best_bytes_per_s,
                text=format_rate(bandwidth.best_bytes_per_s, "B"),
                contended=bandwidth.contended,
            )
    for latency in limits.latencies:
        if latency.level in _OWN_LEVELS and latency.threads == 1:
            yield Probe(
                name=f"latency of {latency.level}",
                kind=ProbeKind.LATENCY,
                value=latency.best_ns,
                text=f"{three_digits(latency.best_ns)} ns",
                contended=latency.contended,
            )
