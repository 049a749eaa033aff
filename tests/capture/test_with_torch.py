"""What torch does with functions and modules, it does with profiled ones, recording or not."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import copy, io, pickle
import torch
import pyrometer

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    @pyrometer.profiled
    def forward(self, values):
        return torch.relu(self.layer(values))

class WithScope(Net):
    def __init__(self):
        super().__init__()
        self.scope = pyrometer.scope("forward")

net, values = Net(), torch.randn(2, 4)
wanted = net(values)
if {recording}:
    profile = pyrometer.profile()
    profile.__enter__()
# One whole graph: nothing of ours breaks it.
assert torch.equal(torch.compile(net, backend="eager", fullgraph=True)(values), wanted)
assert torch.equal(torch.export.export(net, (values,)).module()(values), wanted)
assert torch.equal(torch.jit.script(net)(values), wanted)
assert torch.equal(torch.jit.trace(net, values)(values), wanted)
kept = WithScope()
assert copy.deepcopy(kept).scope.name == "forward"
torch.save(kept, io.BytesIO())
assert pickle.loads(pickle.dumps(kept)).scope.name == "forward"
print("as without")
"""


@pytest.mark.torch
@pytest.mark.parametrize("recording", [False, True])
def test_compiling_exporting_scripting_copying_and_saving_work_as_without(
    tmp_path: Path, recording: bool
) -> None:
    program = tmp_path / "program.py"  # a file, because torch.jit reads the source
    program.write_text(PROGRAM.replace("{recording}", str(recording)))
    command = [sys.executable, "-W", "ignore", str(program)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.stdout == "as without\n", finished.stderr[-3_000:]
