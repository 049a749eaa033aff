"""Generates tokens with a small GPT, in plain PyTorch: what token rates are measured with.

python examples/generate_text.py                     3 inferences of 50 tokens, from a prompt of 32
pyrometer run examples/generate_text.py              the same, and tells what a token costs
pyrometer run examples/generate_text.py --cache      with a key-value cache

The weights are random: what is said makes no sense, and takes as long as if it did.
"""

import argparse

import torch
from torch import Tensor, nn
from torch.nn import functional

VOCABULARY = 512
CONTEXT = 128
WIDTH = 256
LAYERS = 4
HEADS = 8

Cache = list[tuple[Tensor, Tensor]]
"""For each layer the keys and values of all tokens so far."""


class Attention(nn.Module):
    """Causal self-attention, with queries, keys and values from one projection."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)

    def forward(
        self, hidden: Tensor, past: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        batch, length, _ = hidden.shape
        heads = self.qkv(hidden).view(batch, length, 3, HEADS, WIDTH // HEADS)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        if past is not None:
            key = torch.cat((past[0], key), dim=2)
            value = torch.cat((past[1], value), dim=2)
        # A token that continues a cache may see all of it, so there is nothing to mask.
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=past is None)
        mixed = mixed.transpose(1, 2).reshape(batch, length, WIDTH)
        return self.output(mixed), (key, value)


class Block(nn.Module):
    """Attention and feed-forward, each on the normalised input and added to it."""

    def __init__(self) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.feed_forward_norm = nn.LayerNorm(WIDTH)
        self.feed_forward = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(
        self, hidden: Tensor, past: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        mixed, present = self.attention(self.attention_norm(hidden), past)
        hidden = hidden + mixed
        return hidden + self.feed_forward(self.feed_forward_norm(hidden)), present


class Gpt(nn.Module):
    """A decoder of 4 layers, 256 wide, with a head of its own: 3,454,464 parameters in 53 tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.token_embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.position_embedding = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens: Tensor, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        """The scores of each next token, and the cache with ``tokens`` in it."""
        seen = cache[0][0].shape[2] if cache else 0
        positions = torch.arange(seen, seen + tokens.shape[1])
        hidden = self.token_embedding(tokens) + self.position_embedding(positions)
        extended: Cache = []
        for index, block in enumerate(self.blocks):
            hidden, present = block(hidden, cache[index] if cache else None)
            extended.append(present)
        return self.head(self.norm(hidden)), extended


@torch.no_grad()
def generate(model: Gpt, prompt: Tensor, *, tokens: int, temperature: float, use_cache: bool) -> Tensor:
    """The prompt, continued by as many tokens, each drawn by its score."""
    sequence = prompt
    cache: Cache | None = None
    for _ in range(tokens):
        newest = sequence if cache is None else sequence[:, -1:]
        scores, extended = model(newest, cache)
        cache = extended if use_cache else None
        probabilities = functional.softmax(scores[:, -1] / temperature, dim=-1)
        sequence = torch.cat((sequence, torch.multinomial(probabilities, 1)), dim=1)
    return sequence


def positive(text: str) -> int:
    """An option's value that must be a whole number from 1 on."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 on, not {text!r}")
    return int(text)


def main() -> None:
    """Generate as the options say, printing what came out."""
    parser = argparse.ArgumentParser(description="Generate tokens with a small GPT of random weights.")
    parser.add_argument("--inferences", type=positive, default=3)
    parser.add_argument("--tokens", type=positive, default=50, help="to generate in each inference")
    parser.add_argument("--prompt", type=positive, default=32, help="tokens to start from")
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument(
        "--cache", action=argparse.BooleanOptionalAction, default=False, help="key-value cache"
    )
    parser.add_argument("--threads", type=positive, default=1, help="threads torch may use")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    # The last token generated is not read again, and needs no place.
    if options.prompt + options.tokens - 1 > CONTEXT:
        parser.error(
            f"a prompt of {options.prompt} and {options.tokens} tokens exceed the context of {CONTEXT}"
        )

    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    model = Gpt().eval()
    parameters = sum(parameter.numel() for parameter in model.parameters())
    print(f"{parameters:,} parameters, {'with' if options.cache else 'without'} a key-value cache")
    for inference in range(1, options.inferences + 1):
        prompt = torch.randint(VOCABULARY, (1, options.prompt))
        sequence = generate(
            model,
            prompt,
            tokens=options.tokens,
            temperature=options.temperature,
            use_cache=options.cache,
        )
        made = sequence[0, options.prompt :].tolist()
        print(f"inference {inference}: {len(made)} tokens: {' '.join(map(str, made[:8]))} ...")


if __name__ == "__main__":
    main()
