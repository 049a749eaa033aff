"""Parts that import each other in a circle, what it takes to cut each circle, and the layers there are."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyrometer.analysis.codemap.imports import Edge

MOST_EXACT = 12
"""Up to so many members every order is weighed; of more the cut that is found may not be the shortest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """Parts each of which is reached from each other."""

    members: tuple[str, ...]
    shortest: tuple[str, ...]
    """The shortest way round: its parts in order, of which the last imports the first."""
    cut: tuple[Edge, ...]
    """Without these there is no circle left; as few statements as can be."""
    is_least: bool
    """Whether fewer are known not to do."""

    @property
    def way_round(self) -> str:
        """The shortest way, back to where it begins."""
        return " → ".join((*self.shortest, self.shortest[0]))


def find_cycles(edges: Iterable[Edge]) -> tuple[Cycle, ...]:
    """All circles, the largest first."""
    known = {(edge.importer, edge.imported): edge for edge in edges}
    graph = _graph(known)
    cycles = []
    for members in _strongly_connected(graph):
        if len(members) > 1:
            inner = {pair: edge for pair, edge in known.items() if pair[0] in members and pair[1] in members}
            is_least = len(members) <= MOST_EXACT
            order = _best_order(sorted(members), inner) if is_least else _good_order(sorted(members), inner)
            rank = {name: index for index, name in enumerate(order)}
            # In an order without circles everybody imports only those before.
            cut = [edge for (one, other), edge in inner.items() if rank[one] < rank[other]]
            cycles.append(
                Cycle(
                    members=tuple(sorted(members)),
                    shortest=_shortest_way_round(members, graph),
                    cut=tuple(sorted(cut, key=lambda edge: (-edge.weight, edge.importer, edge.imported))),
                    is_least=is_least,
                )
            )
    return tuple(sorted(cycles, key=lambda cycle: (-len(cycle.members), cycle.members)))


def find_layers(names: Collection[str], edges: Iterable[Edge]) -> tuple[tuple[str, ...], ...]:
    """The parts in layers, the lowest first: each imports only parts of lower ones.

    Of circles, the edges that cut them are left out: they lead upwards.
    """
    known = {(one.importer, one.imported): one for one in edges}
    against = {(edge.importer, edge.imported) for cycle in find_cycles(known.values()) for edge in cycle.cut}
    kept = {pair: edge for pair, edge in known.items() if pair not in against}
    graph = {name: set[str]() for name in names} | _graph(kept)
    level: dict[str, int] = {}
    # Those that others need come first.
    for members in _strongly_connected(graph):
        below = [level[other] for name in members for other in graph[name] if other not in members]
        for name in members:
            level[name] = max(below, default=-1) + 1
    height = max(level.values(), default=-1) + 1
    return tuple(
        tuple(sorted(name for name, its in level.items() if its == layer)) for layer in range(height)
    )


_Pairs = Mapping[tuple[str, str], Edge]
_Graph = Mapping[str, Collection[str]]


def _graph(edges: _Pairs) -> dict[str, set[str]]:
    graph: dict[str, set[str]] = {}
    for importer, imported in edges:
        graph.setdefault(importer, set()).add(imported)
        graph.setdefault(imported, set())
    return graph


def _strongly_connected(graph: _Graph) -> list[set[str]]:
    """The sets of names that reach each other, each after all that it reaches (Tarjan, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    open_names: list[str] = []
    is_open: set[str] = set()
    found: list[set[str]] = []
    for start in sorted(graph):
        if start in index:
            continue
        path = [(start, iter(sorted(graph[start])))]
        index[start] = low[start] = len(index)
        open_names.append(start)
        is_open.add(start)
        while path:
            name, left = path[-1]
            following = next(left, None)
            if following is None:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[name])
                if low[name] == index[name]:
                    members = set(open_names[open_names.index(name) :])
                    del open_names[-len(members) :]
                    is_open -= members
                    found.append(members)
            elif following not in index:
                index[following] = low[following] = len(index)
                open_names.append(following)
                is_open.add(following)
                path.append((following, iter(sorted(graph[following]))))
            elif following in is_open:
                low[name] = min(low[name], index[following])
    return found


def _shortest_way_round(members: Collection[str], graph: _Graph) -> tuple[str, ...]:
    """Of all circles among them the shortest, breadth first from each."""
    best: tuple[str, ...] = ()
    for start in sorted(members):
        way_to: dict[str, tuple[str, ...]] = {start: (start,)}
        front = [start]
        while front and (not best or len(way_to[front[0]]) < len(best)):
            reached: list[str] = []
            for name in front:
                if start in graph[name]:
                    way = way_to[name]
                    best = way if not best or len(way) < len(best) else best
                    reached = []
                    break
                for other in sorted(graph[name]):
                    if other in members and other not in way_to:
                        way_to[other] = (*way_to[name], other)
                        reached.append(other)
            front = reached
    return best


def _best_order(members: Sequence[str], edges: _Pairs) -> list[str]:
    """The order in which the fewest statements import a later one: over all sets of those that come first."""
    weight = [[0] * len(members) for _ in members]
    number = {name: index for index, name in enumerate(members)}
    for (one, other), edge in edges.items():
        weight[number[one]][number[other]] = edge.weight
    count = len(members)
    # cost[first]: the least that can be, with the members of that set in front, in some order.
    cost = [0] + [-1] * ((1 << count) - 1)
    last = [0] * (1 << count)
    for first in range(1 << count):
        for new in range(count):
            bit = 1 << new
            if first & bit:
                continue
            # What is in front imports nothing later but by these statements.
            added = sum(weight[one][new] for one in range(count) if first >> one & 1)
            total = cost[first] + added
            if cost[first | bit] < 0 or total < cost[first | bit]:
                cost[first | bit], last[first | bit] = total, new
    order = []
    first = (1 << count) - 1
    while first:
        order.append(members[last[first]])
        first &= ~(1 << last[first])
    return order[::-1]


def _good_order(members: Sequence[str], edges: _Pairs) -> list[str]:
    """A good one: who imports little from those that are left, and is imported much, goes next."""
    balance = dict.fromkeys(members, 0)
    beside: dict[str, list[tuple[str, int]]] = {name: [] for name in members}
    for (one, other), edge in edges.items():
        balance[one] += edge.weight
        balance[other] -= edge.weight
        beside[one].append((other, edge.weight))
        beside[other].append((one, -edge.weight))
    order: list[str] = []
    while balance:
        chosen = min(balance, key=balance.__getitem__)
        order.append(chosen)
        del balance[chosen]
        for other, weight in beside[chosen]:
            if other in balance:
                balance[other] += weight
    return order
