"""A GPT-2 built from a configuration, trained by Hugging Face's Trainer: 12 steps of two batches of 4."""

import tempfile

import torch
from outcome import tell
from torch import Tensor
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, PrinterCallback, Trainer, TrainingArguments


class Sequences(Dataset[dict[str, Tensor]]):
    """96 sequences of 16 tokens."""

    def __init__(self) -> None:
        self._tokens = torch.randint(64, (96, 16), generator=torch.Generator().manual_seed(1))

    def __len__(self) -> int:
        return len(self._tokens)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        return {"input_ids": self._tokens[index], "labels": self._tokens[index]}


def main() -> None:
    """Train, and tell what came out."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=4)
    model = GPT2LMHeadModel(config)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=4,
            gradient_accumulation_steps=2,
            num_train_epochs=1,
            logging_steps=1,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
            seed=3,
        )
        trainer = Trainer(model=model, args=arguments, train_dataset=Sequences())
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    tell(model, [entry["loss"] for entry in trainer.state.log_history if "loss" in entry])


if __name__ == "__main__":
    main()
