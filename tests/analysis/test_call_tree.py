from hypothesis import given
from msgspec import structs

from pyrometer.analysis.call_tree import CallTree, TreeNode, build_call_tree, strand_tree
from pyrometer.record.run import Run
from tests.record.example_runs import any_runs, make_node, make_run, make_strand


def find(tree: CallTree, *path: str, starts_strand: bool | None = None) -> TreeNode:
    (found,) = (
        node for _, node in tree.walk() if node.path == path and starts_strand in {None, node.starts_strand}
    )
    return found


def assert_columns_add_up(tree: CallTree) -> None:
    for _, node in tree.walk():
        inside_ns = sum(child.total_ns for child in node.children if not child.starts_strand)
        assert node.self_ns >= 0
        assert node.self_ns + inside_ns == node.total_ns


@given(any_runs())
def test_self_and_children_are_the_total_in_any_run(run: Run) -> None:
    assert_columns_add_up(build_call_tree(run))
    for index in range(len(run.strands)):
        assert_columns_add_up(strand_tree(run, index))


@given(any_runs())
def test_no_call_and_no_nanosecond_is_lost_or_counted_twice_by_merging(run: Run) -> None:
    nodes = [node for _, node in build_call_tree(run).walk()]
    scopes = list(run.scopes())
    assert sum(node.calls for node in nodes) == sum(scope.calls for scope in scopes)
    assert sum(node.open_calls for node in nodes) == sum(scope.open_calls for scope in scopes)
    assert sum(node.total_ns for node in nodes) == sum(scope.total_ns for scope in scopes)
    assert sum(node.suspended_ns for node in nodes) == sum(scope.suspended_ns for scope in scopes)
    assert sum(calls for node in nodes for _, calls in node.buckets) == sum(scope.calls for scope in scopes)


@given(any_runs())
def test_children_are_ordered_by_their_total_and_then_by_name(run: Run) -> None:
    tree = build_call_tree(run)
    for siblings in (tree.roots, *(node.children for _, node in tree.walk())):
        keys = [(-node.total_ns, node.name) for node in siblings]
        assert keys == sorted(keys)


def test_a_recursive_scope_stands_under_itself() -> None:
    tree = build_call_tree(
        make_run(
            make_strand(make_node("fib", 100), make_node("fib", 60, parent=0), make_node("fib", 25, parent=1))
        )
    )
    assert [(depth, node.path, node.self_ns) for depth, node in tree.walk()] == [
        (0, ("fib",), 40),
        (1, ("fib", "fib"), 35),
        (2, ("fib", "fib", "fib"), 25),
    ]


def test_time_in_no_scope_is_what_the_top_scopes_leave_of_the_profiled_time() -> None:
    run = make_run(make_strand(make_node("load", 300), make_node("train", 450)), profiled_ns=1_000)
    assert build_call_tree(run).outside_ns == 250


def test_a_run_without_scopes_was_outside_all_the_time() -> None:
    tree = build_call_tree(make_run(profiled_ns=1_000))
    assert tree == CallTree(roots=(), profiled_ns=1_000, outside_ns=1_000)


def two_workers() -> Run:
    """A pool that ran for 500 ns of wall time, in which two workers spent 450 and 400 ns in steps."""
    main = make_strand(make_node("epoch", 800), make_node("pool", 500, parent=0), thread_id=1)
    first = make_strand(
        make_node("step", 450, durations_ns=[200, 250], wall_ns=480),
        make_node("forward", 300, parent=0, wall_ns=350),
        parent=(0, 1),
        thread_id=2,
    )
    second = make_strand(
        make_node("step", 400, durations_ns=[400], wall_ns=480),
        make_node("forward", 100, parent=0, wall_ns=350),
        parent=(0, 1),
        thread_id=3,
    )
    return make_run(main, first, second)


def test_threads_hang_under_the_scope_that_started_them() -> None:
    step = find(build_call_tree(two_workers()), "epoch", "pool", "step", starts_strand=True)
    assert step.parallel
    assert (step.calls, step.min_ns, step.max_ns) == (3, 200, 400)
    assert (step.total_ns, step.self_ns) == (850, 450)


def test_the_wall_time_that_threads_share_is_taken_once() -> None:
    tree = build_call_tree(two_workers())
    assert find(tree, "epoch", "pool", "step", starts_strand=True).wall_ns == 480
    assert find(tree, "epoch", "pool", "step", "forward").wall_ns == 350


def test_the_time_of_threads_is_no_part_of_the_scope_that_started_them() -> None:
    pool = find(build_call_tree(two_workers()), "epoch", "pool")
    assert not pool.parallel
    assert pool.self_ns == 500


def test_scopes_inside_a_worker_are_parallel_and_part_of_their_parent() -> None:
    forward = find(build_call_tree(two_workers()), "epoch", "pool", "step", "forward")
    assert forward.parallel
    assert not forward.starts_strand


def test_a_scope_and_its_namesake_on_a_thread_started_there_stay_apart() -> None:
    tree = build_call_tree(
        make_run(
            make_strand(make_node("train", 900), make_node("load", 100, parent=0)),
            make_strand(make_node("load", 700, wall_ns=700), parent=(0, 0), thread_id=2),
        )
    )
    assert find(tree, "train", "load", starts_strand=False).total_ns == 100
    assert find(tree, "train", "load", starts_strand=True).total_ns == 700
    assert find(tree, "train").self_ns == 800


def test_a_thread_started_by_a_worker_starts_a_branch_of_its_own_under_it() -> None:
    run = make_run(
        make_strand(make_node("pool", 900)),
        make_strand(
            make_node("step", 500, wall_ns=500),
            make_node("read", 200, parent=0, wall_ns=600),
            parent=(0, 0),
            thread_id=2,
        ),
        make_strand(make_node("read", 400, wall_ns=600), parent=(1, 0), thread_id=3),
    )
    tree = build_call_tree(run)
    assert_columns_add_up(tree)
    assert find(tree, "pool", "step").self_ns == 300
    assert find(tree, "pool", "step", "read", starts_strand=True).total_ns == 400


def test_threads_started_in_no_scope_are_roots_apart_from_the_main_threads() -> None:
    tree = build_call_tree(
        make_run(
            make_strand(thread_id=3),
            make_strand(make_node("work", 900, wall_ns=900), thread_id=2),
            make_strand(make_node("work", 300)),
            profiled_ns=1_000,
        )
    )
    assert [(root.name, root.parallel, root.starts_strand, root.total_ns) for root in tree.roots] == [
        ("work", True, True, 900),
        ("work", False, False, 300),
    ]
    assert tree.outside_ns == 700


def test_a_main_thread_in_no_scope_was_outside_all_the_time() -> None:
    tree = build_call_tree(
        make_run(make_strand(make_node("work", 900, wall_ns=900), thread_id=2), profiled_ns=1_000)
    )
    assert [(root.parallel, root.wall_ns) for root in tree.roots] == [(True, 900)]
    assert tree.outside_ns == 1_000


def test_one_strand_by_itself_holds_only_its_own_scopes() -> None:
    run = two_workers()
    first = strand_tree(run, 1)
    assert [(node.path, node.total_ns, node.self_ns) for _, node in first.walk()] == [
        (("step",), 450, 150),
        (("step", "forward"), 300, 300),
    ]
    assert [(node.parallel, node.wall_ns) for _, node in first.walk()] == [(False, None)] * 2
    assert first.outside_ns == 550


def test_a_tree_may_be_far_deeper_than_the_stack_of_python() -> None:
    depth = 30_000
    nodes = [make_node("down", depth - index, parent=index - 1 if index else None) for index in range(depth)]
    tree = build_call_tree(make_run(make_strand(*nodes)))
    assert max(level for level, _ in tree.walk()) == depth - 1
    assert_columns_add_up(tree)


def test_bytes_allocated_in_scopes_add_up_as_their_time_does() -> None:
    nodes = [
        make_node(name, 10, parent=parent)
        for name, parent in (("step", None), ("forward", 0), ("backward", 0))
    ]
    counted = [
        structs.replace(node, total_ns=total_ns, allocated_bytes=size, allocations=2)
        for node, total_ns, size in zip(nodes, (30, 10, 10), (900, 500, 300), strict=True)
    ]
    tree = build_call_tree(make_run(make_strand(*counted)))
    assert [(node.name, node.allocated_bytes, node.self_allocated_bytes) for _, node in tree.walk()] == [
        ("step", 900, 100),
        ("backward", 300, 300),
        ("forward", 500, 500),
    ]
    assert find(tree, "step").allocations == 2


def test_where_bytes_were_not_counted_there_are_none() -> None:
    tree = build_call_tree(make_run(make_strand(make_node("step", 10))))
    assert (find(tree, "step").allocated_bytes, find(tree, "step").self_allocated_bytes) == (None, None)
