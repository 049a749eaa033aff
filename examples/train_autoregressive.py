"""Trains a small character-level language model with worker threads, each on its shard of a batch.

python examples/train_autoregressive.py -c configs/autoregressive_training.json --profile

The scopes stand where a reader of the program would put them; the ones the workers open hang
under ``Parallel_Training``, the scope that gave them their work.
"""

import argparse
import copy
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import msgspec
import torch
from torch import Tensor, nn
from torch.nn import functional

import pyrometer

Count = Annotated[int, msgspec.Meta(ge=1, le=10_000)]


class ModelConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The shape of the model; the heads share its width evenly."""

    layers: Count
    width: Count
    heads: Count
    context: Annotated[int, msgspec.Meta(ge=2, le=1_000)]

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise ValueError(f"{self.heads} heads cannot share width {self.width} evenly")


class TrainingConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long and by how many workers it is trained; the workers share a batch evenly."""

    epochs: Count
    batches: Count
    batch_size: Count
    learning_rate: Annotated[float, msgspec.Meta(gt=0, le=1)]
    workers: Count = 2
    torch_threads: Count = 1
    seed: Annotated[int, msgspec.Meta(ge=0, le=2**31)] = 0

    def __post_init__(self) -> None:
        if self.batch_size % self.workers:
            raise ValueError(f"{self.workers} workers cannot share batch_size {self.batch_size} evenly")


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A configuration file."""

    model: ModelConfig
    training: TrainingConfig


class Block(nn.Module):
    """Causal self-attention and a feed-forward net, each added to what came in."""

    def __init__(self, config: ModelConfig, index: int) -> None:
        super().__init__()
        self.name = f"Layer_{index}"
        self.heads = config.heads
        self.attention_norm = nn.LayerNorm(config.width)
        self.query_key_value = nn.Linear(config.width, 3 * config.width)
        self.projection = nn.Linear(config.width, config.width)
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(config.width),
            nn.Linear(config.width, 4 * config.width),
            nn.GELU(),
            nn.Linear(4 * config.width, config.width),
        )

    def attend(self, hidden: Tensor) -> Tensor:
        batch, length, width = hidden.shape
        mixed: Tensor = self.query_key_value(self.attention_norm(hidden))
        query, key, value = mixed.view(batch, length, 3 * self.heads, -1).transpose(1, 2).chunk(3, dim=1)
        attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        projected: Tensor = self.projection(attended.transpose(1, 2).reshape(batch, length, width))
        return projected

    def forward(self, hidden: Tensor) -> Tensor:
        with pyrometer.scope(self.name):
            with pyrometer.scope("Attention"):
                hidden = hidden + self.attend(hidden)
            with pyrometer.scope("Feed_Forward"):
                hidden = hidden + self.feed_forward(hidden)
        return hidden


class LanguageModel(nn.Module):
    """Scores each character of the vocabulary as the next one, at every place of a text."""

    def __init__(self, config: ModelConfig, vocabulary: int) -> None:
        super().__init__()
        self.characters = nn.Embedding(vocabulary, config.width)
        self.places = nn.Embedding(config.context, config.width)
        self.blocks = nn.Sequential(*(Block(config, index) for index in range(config.layers)))
        self.head = nn.Sequential(nn.LayerNorm(config.width), nn.Linear(config.width, vocabulary))

    def forward(self, text: Tensor) -> Tensor:
        hidden = self.characters(text) + self.places(torch.arange(text.shape[1]))
        scores: Tensor = self.head(self.blocks(hidden))
        return scores


def generate_text(sentences: int, generator: random.Random) -> str:
    """Sentences with a grammar simple enough to be learnt in seconds."""
    subjects = ("the model", "a layer", "the optimizer", "one worker", "every batch")
    verbs = ("reads", "waits for", "doubles", "forgets", "measures")
    objects = ("the gradient", "a tensor", "its own loss", "the next token", "some memory")
    parts = (subjects, verbs, objects)
    return ". ".join(" ".join(generator.choice(part) for part in parts) for _ in range(sentences))


class Trainer:
    """The model, its optimizer, and one replica for each worker.

    The replicas share the model's weights, so a step of the optimizer reaches all of them at
    once, but each has gradients of its own.
    """

    def __init__(self, config: Config, text: str) -> None:
        alphabet = sorted(set(text))
        self.text = torch.tensor([alphabet.index(character) for character in text])
        self.config = config
        with pyrometer.scope("Model_Creation"):
            self.model = LanguageModel(config.model, len(alphabet))
        with pyrometer.scope("Optimizer_Creation"):
            self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=config.training.learning_rate)
        self.replicas = [copy.deepcopy(self.model) for _ in range(config.training.workers)]
        for replica in self.replicas:
            for own, shared in zip(replica.parameters(), self.model.parameters(), strict=True):
                own.data = shared.data
        self.pool = ThreadPoolExecutor(config.training.workers, thread_name_prefix="worker")

    @pyrometer.profiled("train_epoch")
    def train_epoch(self) -> float:
        """Train on as many batches as configured; returns the mean loss."""
        losses = [self.train_batch() for _ in range(self.config.training.batches)]
        return sum(losses) / len(losses)

    @pyrometer.profiled("Batch_Processing")
    def train_batch(self) -> float:
        """One step of the optimizer, on gradients averaged over the workers."""
        with pyrometer.scope("Data_Loading"):
            shards = self.draw_batch().chunk(len(self.replicas))
        with pyrometer.scope("Parallel_Training"):
            losses = list(self.pool.map(train_step, self.replicas, shards))
        with pyrometer.scope("Gradient_Averaging"):
            self.average_gradients()
        with pyrometer.scope("Optimizer_Step"):
            self.optimizer.step()
        return sum(losses) / len(losses)

    def draw_batch(self) -> Tensor:
        """Stretches of the text, each one character longer than the context: the last to be foretold."""
        length = self.config.model.context + 1
        starts = torch.randint(len(self.text) - length, (self.config.training.batch_size, 1))
        return self.text[starts + torch.arange(length)]

    def average_gradients(self) -> None:
        groups = zip(*(replica.parameters() for replica in self.replicas), strict=True)
        for parameter, replicated in zip(self.model.parameters(), groups, strict=True):
            gradients = [replica.grad for replica in replicated if replica.grad is not None]
            parameter.grad = torch.stack(gradients).mean(dim=0)


@pyrometer.profiled("train_step")
def train_step(replica: LanguageModel, shard: Tensor) -> float:
    """One worker's part: leaves the gradients of its shard in its replica."""
    with pyrometer.scope("Forward_Pass"):
        scores = replica(shard[:, :-1])
    with pyrometer.scope("Loss_Computation"):
        loss = functional.cross_entropy(scores.flatten(0, 1), shard[:, 1:].flatten())
    with pyrometer.scope("Backward_Pass"):
        replica.zero_grad()
        loss.backward()
    return loss.item()


def read_config(path: Path) -> Config:
    """The configuration at ``path``, looked for from the working directory, then beside this program."""
    found = path if path.exists() else Path(__file__).parent / path
    try:
        return msgspec.json.decode(found.read_bytes(), type=Config)
    except OSError as error:
        raise SystemExit(fail(f"{path}: {error.strerror}. Name a configuration with -c")) from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise SystemExit(fail(f"{found}: {error}. Correct the file, or name another with -c")) from None


def fail(problem: str) -> int:
    """Tell the user in one line; returns the exit code."""
    print(f"train_autoregressive.py: {problem}", file=sys.stderr)
    return 2


def main() -> None:
    """Train as the configuration says, printing the loss of each epoch."""
    parser = argparse.ArgumentParser(description="Train a small language model with worker threads.")
    parser.add_argument("-c", "--config", type=Path, default=Path("configs/autoregressive_training.json"))
    pyrometer.add_profile_flag(parser)
    options = parser.parse_args()

    config = read_config(options.config)
    # The workers are the parallelism: torch's own threads would only get in their way.
    torch.set_num_threads(config.training.torch_threads)
    torch.manual_seed(config.training.seed)
    with pyrometer.scope("Setup"):
        trainer = Trainer(config, generate_text(1_000, random.Random(config.training.seed)))
    parameters = sum(parameter.numel() for parameter in trainer.model.parameters())
    print(f"{parameters:,} parameters, {config.training.workers} workers, {len(trainer.text):,} characters")
    with trainer.pool:
        for epoch in range(1, config.training.epochs + 1):
            print(f"epoch {epoch}: loss {trainer.train_epoch():.4f}")


if __name__ == "__main__":
    main()
