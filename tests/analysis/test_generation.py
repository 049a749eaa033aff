import msgspec
import pytest

from pyrometer.analysis.generation import CacheUse, GenerationResult, GrowthVerdict, build_generation
from pyrometer.record.torch_run import Generation, PositionBin
from tests.torch_runs import KB, MB, MS, US, generation_run


def record(*, cached: bool) -> Generation:
    torch = generation_run(cached=cached).torch
    assert torch is not None
    return torch.generations[0]


def result(*, cached: bool) -> GenerationResult:
    return build_generation(record(cached=cached))


def test_a_token_has_its_time_and_bytes() -> None:
    found = result(cached=True)
    # 8 ms and 39 times 2 ms for 40 tokens; 10 MB and 39 times 1 MB.
    assert found.ns_per_token == 86 * MS / 40
    assert found.tokens_per_second == pytest.approx(1_000 * 40 / 86)
    assert found.bytes_per_token == 49 * MB / 40
    assert (found.first_token_ns, found.prompt_tokens_per_sequence) == (8 * MS, 16)


def test_with_a_cache_the_cost_does_not_grow_with_context() -> None:
    found = result(cached=True)
    assert (found.cache, found.cached_share) == (CacheUse.WITH, 1.0)
    growth = found.growth
    # The first token, which takes in the prompt, is no part of it.
    assert (growth.first_quarter_ns, growth.last_quarter_ns, growth.ratio) == (2 * MS, 2 * MS, 1.0)
    assert growth.slope_ns_per_position == 0
    assert growth.verdict is GrowthVerdict.FLAT


def test_without_a_cache_the_cost_grows_with_context() -> None:
    found = result(cached=False)
    assert (found.cache, found.cached_share) == (CacheUse.WITHOUT, 0.0)
    growth = found.growth
    # Of 156 tokens after the first the first 39: 12 at 2.2 ms, 16 at 2.55 ms, 11 at 2.95 ms.
    assert growth.first_quarter_ns == pytest.approx((12 * 2.2 + 16 * 2.55 + 11 * 2.95) / 39 * MS)
    assert growth.last_quarter_ns == pytest.approx((32 * 5.55 + 7 * 4.75) / 39 * MS)
    assert growth.slope_ns_per_position == pytest.approx(100 * US, rel=0.01)
    assert growth.verdict is GrowthVerdict.GROWS


def test_costs_by_position_are_those_of_the_record() -> None:
    lowest = result(cached=False).positions[1]
    assert (lowest.low, lowest.high, lowest.tokens) == (20, 23, 16)
    assert lowest.ns_per_token == 2.55 * MS
    assert lowest.bytes_per_token == MB + 5.5 * 50 * KB


def test_a_batch_makes_a_token_for_each_of_its_sequences() -> None:
    generation = Generation(
        label="gpt",
        sequences=2,
        passes=20,
        tokens=160,
        total_ns=200 * MS,
        prompt_tokens=2 * 8 * 30,
        first_token_ns=40 * MS,
        cached_passes=18,
        positions=(PositionBin(28, 31, 32, 60 * MS), PositionBin(32, 39, 128, 140 * MS)),
    )
    found = build_generation(generation)
    assert found.tokens_per_second == 800
    assert found.prompt_tokens_per_sequence == 30
    assert found.first_token_ns == 20 * MS
    # 16 tokens and 40 ms of the lowest positions are the first ones.
    assert found.growth.first_quarter_ns == pytest.approx((16 * 20 / 16 + 20 * 140 / 128) / 36 * MS)
    assert found.growth.verdict is GrowthVerdict.FLAT


def test_prompts_of_different_lengths_leave_the_positions_as_they_are() -> None:
    generation = msgspec.structs.replace(record(cached=True), prompt_tokens=4 * 30)
    assert build_generation(generation).growth.first_quarter_ns == pytest.approx(
        (16 * 3.5 + 24 * 2) / 40 * MS
    )


@pytest.mark.parametrize(
    ("cached_passes", "cache"), [(141, CacheUse.WITH), (140, CacheUse.PARTLY), (15, CacheUse.WITHOUT)]
)
def test_a_cache_used_in_nine_of_ten_later_passes_counts_as_used(cached_passes: int, cache: CacheUse) -> None:
    generation = msgspec.structs.replace(record(cached=True), cached_passes=cached_passes)
    assert build_generation(generation).cache is cache


def test_single_passes_say_nothing_of_cache_or_growth() -> None:
    generation = Generation(
        label="gpt",
        sequences=5,
        passes=5,
        tokens=5,
        total_ns=10 * MS,
        prompt_tokens=50,
        first_token_ns=10 * MS,
        cached_passes=0,
        positions=(PositionBin(10, 10, 5, 10 * MS),),
    )
    found = build_generation(generation)
    assert (found.cache, found.cached_share) == (CacheUse.CANNOT_TELL, None)
    assert found.growth.verdict is GrowthVerdict.CANNOT_TELL
    assert found.growth.ratio is None
    assert found.bytes_per_token is None


def test_few_passes_do_not_make_a_trend() -> None:
    generation = Generation(
        label="gpt",
        sequences=1,
        passes=8,
        tokens=8,
        total_ns=80 * MS,
        prompt_tokens=4,
        first_token_ns=MS,
        cached_passes=0,
        positions=tuple(PositionBin(4 + index, 4 + index, 1, (index + 1) * MS) for index in range(8)),
    )
    assert build_generation(generation).growth.verdict is GrowthVerdict.CANNOT_TELL
