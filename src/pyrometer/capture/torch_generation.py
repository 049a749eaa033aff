"""Text made token by token: which root calls go on with a sequence, and what each position costs."""

import threading
from dataclasses import dataclass

from pyrometer.capture.step_groups import Stretch
from pyrometer.record.torch_run import Generation, PositionBin

_MAX_MODELS = 8
_OTHER = "(other)"
_BINS_PER_OCTAVE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One forward pass of a generator, as far as its call shows."""

    model: str
    position: int
    """The length of the context it worked on."""
    sequences: int
    """Side by side, in one batch."""
    starts: bool
    """The first pass, over the prompt."""
    cached: bool
    """It got the newest token alone."""
    duration_ns: int = 0
    """The forward pass itself."""


class _Sequence:
    __slots__ = ("batch", "cached", "length", "position")

    def __init__(self, batch: int, length: int) -> None:
        self.batch = batch
        self.length = length
        self.position = length
        self.cached = False

    def goes_on_with(self, batch: int, length: int) -> bool:
        """One token more, or the newest token alone while the model remembers the others."""
        if batch != self.batch:
            return False
        if length == 1 and (self.cached or self.length > 1):
            self.cached = True
        elif length != self.length + 1:
            return False
        self.length = length
        self.position += 1
        return True


class _Followed(threading.local):
    """What one thread is generating, by root module."""

    def __init__(self) -> None:
        self.sequences: dict[str, _Sequence] = {}
        self.began: dict[str, Token] = {}


class GenerationWatch:
    """Follows the sequences of each root module called without gradients, on each thread."""

    def __init__(self) -> None:
        self._here = _Followed()
        self._totals: dict[str, _Totals] = {}

    def called(self, model: str, shape: tuple[int, int] | None, *, tracks_gradients: bool) -> bool:
        """Whether this call makes the next token of a sequence; ``shape`` is (batch, tokens)."""
        sequences, began = self._here.sequences, self._here.began
        if shape is None or tracks_gradients:
            sequences.pop(model, None)
            began.pop(model, None)
            return False
        sequence = sequences.get(model)
        if sequence is not None and sequence.goes_on_with(*shape):
            began[model] = Token(
                model=model,
                position=sequence.position,
                sequences=sequence.batch,
                starts=False,
                cached=sequence.cached,
            )
            return True
        if len(sequences) < _MAX_MODELS or model in sequences:
            sequences[model] = _Sequence(*shape)
            began[model] = Token(
                model=model, position=shape[1], sequences=shape[0], starts=True, cached=False
            )
        return False

    def returned(self, model: str, duration_ns: int) -> Token | None:
        """What the call that has just returned made, if it may be a generator's."""
        began = self._here.began.pop(model, None)
        if began is None:
            return None
        return Token(
            model=began.model,
            position=began.position,
            sequences=began.sequences,
            starts=began.starts,
            cached=began.cached,
            duration_ns=duration_ns,
        )

    def made(self, token: Token, stretch: Stretch) -> None:
        """A step that made a token is finished."""
        model = token.model
        if model not in self._totals and len(self._totals) >= _MAX_MODELS:
            model = _OTHER
        self._totals.setdefault(model, _Totals()).add(token, stretch)

    def records(self, *, counts_bytes: bool) -> tuple[Generation, ...]:
        """What was generated, by root module."""
        return tuple(
            totals.record(model, counts_bytes=counts_bytes) for model, totals in self._totals.copy().items()
        )


class _Totals:
    def __init__(self) -> None:
        self.sequences = 0
        self.passes = 0
        self.tokens = 0
        self.total_ns = 0
        self.prompt_tokens = 0
        self.first_token_ns = 0
        self.cached_passes = 0
        self.bytes = 0
        self.positions: dict[int, list[int]] = {}

    def add(self, token: Token, stretch: Stretch) -> None:
        duration_ns, allocated = sum(stretch.ns), sum(stretch.bytes)
        self.passes += 1
        self.tokens += token.sequences
        self.total_ns += duration_ns
        self.bytes += allocated
        self.cached_passes += token.cached
        if token.starts:
            self.sequences += 1
            self.prompt_tokens += token.position * token.sequences
            self.first_token_ns += token.duration_ns
        figures = self.positions.setdefault(_bin_of(token.position), [0, 0, 0])
        for place, figure in enumerate((token.sequences, duration_ns, allocated)):
            figures[place] += figure

    def record(self, model: str, *, counts_bytes: bool) -> Generation:
        return Generation(
            label=model,
            sequences=self.sequences,
            passes=self.passes,
            tokens=self.tokens,
            total_ns=self.total_ns,
            prompt_tokens=self.prompt_tokens,
            first_token_ns=self.first_token_ns,
            cached_passes=self.cached_passes,
            allocated_bytes=self.bytes if counts_bytes else None,
            positions=tuple(
                PositionBin(*_bin_bounds(number), tokens, total_ns, allocated if counts_bytes else None)
                for number, (tokens, total_ns, allocated) in sorted(self.positions.copy().items())
            ),
        )


def _bin_of(position: int) -> int:
    """Four bins to each power of two; each position by itself below eight."""
    if position < 2 * _BINS_PER_OCTAVE:
        return position
    shift = position.bit_length() - 3
    return shift * _BINS_PER_OCTAVE + (position >> shift)


def _bin_bounds(number: int) -> tuple[int, int]:
    if number < 2 * _BINS_PER_OCTAVE:
        return number, number
    shift = number // _BINS_PER_OCTAVE - 1
    low = (_BINS_PER_OCTAVE + number % _BINS_PER_OCTAVE) << shift
    return low, low + (1 << shift) - 1
