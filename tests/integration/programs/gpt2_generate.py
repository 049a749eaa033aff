"""A GPT-2 built from a configuration continues two prompts of 8 by 20 tokens, three times.

python gpt2_generate.py [--no-cache]
"""

import sys

import torch
from outcome import tell
from transformers import GPT2Config, GPT2LMHeadModel

torch.set_num_threads(1)
torch.manual_seed(0)
config = GPT2Config(
    vocab_size=64, n_positions=64, n_embd=32, n_layer=2, n_head=4, bos_token_id=None, eos_token_id=None
)
model = GPT2LMHeadModel(config).eval()
prompts = torch.randint(64, (2, 8))
sums = []
for _ in range(3):
    made = model.generate(
        prompts,
        attention_mask=torch.ones_like(prompts),
        max_new_tokens=20,
        do_sample=True,
        use_cache="--no-cache" not in sys.argv,
        pad_token_id=0,
    )
    sums.append(float(made.sum()))
    print(made.tolist())
tell(model, sums)
