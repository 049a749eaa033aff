"""What is always said of a kind of finding: likely causes, what to try, effort and risk."""

from dataclasses import dataclass

from pyrometer.analysis.findings.model import Effort, FindingKind, Remedy, Risk


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The words for a kind; ``knob`` is the experiment that would measure the gain."""

    causes: tuple[str, ...]
    remedies: tuple[Remedy, ...]
    effort: Effort
    risk: Risk = Risk.NONE
    knob: str | None = None


ADVICE: dict[FindingKind, Advice] = {
    FindingKind.INPUT_BOUND: Advice(
        causes=(
            "batches are made slower than the steps use them",
            "each sample is decoded or transformed anew in every epoch",
        ),
        remedies=(
            Remedy(
                text="do what is the same in each epoch once, beforehand",
                snippet="samples = [transform(sample) for sample in samples]  # once, before the loop",
            ),
        ),
        effort=Effort.MINUTES,
        knob="num_workers",
    ),
    FindingKind.TOO_FEW_WORKERS: Advice(
        causes=("the workers are busy nearly all the time and still behind",),
        remedies=(Remedy(text="less work for each sample: look at fetch, transform and collate"),),
        effort=Effort.MINUTES,
        knob="num_workers",
    ),
    FindingKind.IDLE_WORKERS: Advice(
        causes=("more workers than the steps can use",),
        remedies=(),
        effort=Effort.MINUTES,
        knob="num_workers",
    ),
    FindingKind.WORKERS_RESTART: Advice(
        causes=("the loader ends its workers with each epoch and starts new ones",),
        remedies=(
            Remedy(
                text="keep the workers between epochs",
                snippet="DataLoader(dataset, num_workers=4, persistent_workers=True)",
            ),
        ),
        effort=Effort.MINUTES,
        knob="persistent_workers",
    ),
    FindingKind.SLOW_COLLATE: Advice(
        causes=("samples are put together one by one, each a small tensor",),
        remedies=(
            Remedy(
                text="fetch a whole batch at once, and collate nothing",
                snippet="class Batches(Dataset):\n"
                "    def __getitems__(self, indices):\n"
                "        return self.inputs[indices], self.targets[indices]\n\n"
                "DataLoader(Batches(), batch_size=64, collate_fn=lambda batch: batch)",
            ),
        ),
        effort=Effort.HOURS,
    ),
    FindingKind.SLOW_TRANSFORM: Advice(
        causes=("the dataset's transform works on one sample at a time, in Python",),
        remedies=(
            Remedy(text="transform whole batches, after collating or on the device"),
            Remedy(text="keep what the transform gives where it is the same in each epoch"),
        ),
        effort=Effort.HOURS,
    ),
    FindingKind.OPTIMIZER_LOOP: Advice(
        causes=("the optimizer updates one parameter after the other, several operations each",),
        remedies=(),
        effort=Effort.MINUTES,
        risk=Risk.ROUNDING,
        knob="fused_optimizer",
    ),
    FindingKind.TINY_OPERATORS: Advice(
        causes=("each operation has a fixed cost, and most do little more than that",),
        remedies=(
            Remedy(text="let the compiler fuse them", snippet="model = torch.compile(model)"),
            Remedy(text="a larger batch: the same operations, more work in each"),
            Remedy(text="whole tensors instead of loops over their rows"),
        ),
        effort=Effort.HOURS,
        risk=Risk.ROUNDING,
        knob="compile",
    ),
    FindingKind.NO_CACHE: Advice(
        causes=("each new token is computed from the whole context again",),
        remedies=(
            Remedy(
                text="keep the keys and values of past tokens, and pass on only the newest one",
                snippet="outputs = model(token, past_key_values=cache, use_cache=True)",
            ),
        ),
        effort=Effort.HOURS,
        risk=Risk.ROUNDING,
        knob="kv_cache",
    ),
    FindingKind.ALLOCATION_CHURN: Advice(
        causes=("results that are made anew in each step, and thrown away",),
        remedies=(
            Remedy(text="write into tensors made once", snippet="torch.matmul(a, b, out=result)"),
            Remedy(text="operations in place where the old value is not needed", snippet="x.relu_()"),
        ),
        effort=Effort.DAYS,
        knob="allocator",
    ),
    FindingKind.SYNCHRONISING: Advice(
        causes=("figures are taken out of tensors one at a time: .item(), float(), if tensor:",),
        remedies=(
            Remedy(
                text="gather figures in a tensor, and take them out once in a while",
                snippet="total += loss.detach()\nif step % 100 == 0:\n    print(total.item() / 100)",
            ),
        ),
        effort=Effort.HOURS,
    ),
    FindingKind.UNUSED_GRADIENTS: Advice(
        causes=("forward passes for evaluation or inference outside of no_grad",),
        remedies=(
            Remedy(
                text="tell torch that no gradients will be asked for",
                snippet="with torch.inference_mode():\n    outputs = model(inputs)",
            ),
        ),
        effort=Effort.MINUTES,
        knob="inference_mode",
    ),
    FindingKind.COPIES: Advice(
        causes=(
            "tensors are made in one type, layout or place and used in another",
            "transposed or sliced views that an operation needs in one piece",
        ),
        remedies=(
            Remedy(text="make tensors with their final type and layout, once"),
            Remedy(text="order dimensions so that no transpose is needed before the product"),
        ),
        effort=Effort.HOURS,
    ),
    FindingKind.DOUBLE_PRECISION: Advice(
        causes=("numpy's default type, float64, came in with the data or the parameters",),
        remedies=(
            Remedy(
                text="single precision for model and data",
                snippet="model = model.float()\ninputs = torch.from_numpy(array).float()",
            ),
        ),
        effort=Effort.MINUTES,
        risk=Risk.ROUNDING,
        knob="float32",
    ),
    FindingKind.TOO_MANY_THREADS: Advice(
        causes=("threads of torch, of workers and of other libraries wait for each other's cores",),
        remedies=(
            Remedy(text="or from outside", snippet="OMP_NUM_THREADS=1 python PROGRAM.py", language="bash"),
        ),
        effort=Effort.MINUTES,
        knob="threads",
    ),
    FindingKind.SMALL_BATCH: Advice(
        causes=("the fixed cost of a step is shared by few samples",),
        remedies=(),
        effort=Effort.MINUTES,
        risk=Risk.LEARNING,
        knob="batch_size",
    ),
    FindingKind.GARBAGE_COLLECTION: Advice(
        causes=("many objects are made in the loop while many others live, and all are looked at again",),
        remedies=(
            Remedy(
                text="leave out of the search what lives as long as the program",
                snippet="gc.collect()\ngc.freeze()  # before the loop",
            ),
            Remedy(text="search less often", snippet="gc.set_threshold(100_000, 20, 20)"),
        ),
        effort=Effort.MINUTES,
        knob="gc_freeze",
    ),
    FindingKind.MEMORY_GROWTH: Advice(
        causes=(
            "a list of losses or outputs that keeps the graph of each step alive",
            "a cache without a limit",
        ),
        remedies=(
            Remedy(text="keep figures, not tensors with their graph", snippet="losses.append(loss.item())"),
        ),
        effort=Effort.HOURS,
    ),
    FindingKind.LONG_TAIL: Advice(
        causes=("work that is done in some steps only",),
        remedies=(),
        effort=Effort.HOURS,
    ),
    FindingKind.FIRST_CALL: Advice(
        causes=(
            "compilation, memory taken from the system for the first time, workers that start",
            "libraries that are loaded when first used",
        ),
        remedies=(Remedy(text="in a server: a call before the first request"),),
        effort=Effort.HOURS,
    ),
    FindingKind.HOT_PYTHON: Advice(
        causes=("a loop in Python over what could be one operation on all of it",),
        remedies=(),
        effort=Effort.HOURS,
        risk=Risk.ROUNDING,
    ),
    FindingKind.OUTSIDE_PHASES: Advice(
        causes=(
            "the program's own work between the calls of torch: preparing inputs, metrics, waiting",
        ),
        remedies=(
            Remedy(
                text="see its parts: mark them, and look at the functions called there",
                snippet='with pyrometer.phase("prepare"):\n    inputs = prepare(raw)',
            ),
            Remedy(text="prepare the next inputs beside the steps, in a DataLoader with workers"),
        ),
        effort=Effort.HOURS,
    ),
    FindingKind.MEMORY_BOUND: Advice(
        causes=("little is computed for each byte: memory is the limit, and not arithmetic",),
        remedies=(
            Remedy(text="fuse it with its neighbours", snippet="model = torch.compile(model)"),
            Remedy(text="fewer bytes for each value", snippet="model = model.to(torch.bfloat16)"),
        ),
        effort=Effort.HOURS,
        risk=Risk.ROUNDING,
        knob="compile",
    ),
    FindingKind.STRIDED_ACCESS: Advice(
        causes=("rows are read here and there, so that most of each cache line is wasted",),
        remedies=(
            Remedy(text="look rows up in order", snippet="indices, order = indices.sort()"),
            Remedy(text="lay out in memory what is read together, once", snippet="x = x.t().contiguous()"),
        ),
        effort=Effort.HOURS,
    ),
    FindingKind.STALLS: Advice(
        causes=("saving, logging or printing inside the loop, while the model waits",),
        remedies=(
            Remedy(text="less often", snippet="if step % 1_000 == 0:\n    torch.save(...)"),
            Remedy(
                text="on a thread of its own, from a copy",
                snippet="state = {name: value.clone() for name, value in model.state_dict().items()}\n"
                "threading.Thread(target=torch.save, args=(state, path)).start()",
            ),
        ),
        effort=Effort.HOURS,
    ),
    FindingKind.GRAPH_BREAKS: Advice(
        causes=("code that the compiler cannot follow, or shapes that change from call to call",),
        remedies=(
            Remedy(
                text="see where",
                snippet="TORCH_LOGS=graph_breaks,recompiles python PROGRAM.py",
                language="bash",
            ),
            Remedy(text="for changing shapes", snippet="model = torch.compile(model, dynamic=True)"),
        ),
        effort=Effort.HOURS,
        knob="compile",
    ),
    FindingKind.GPU_IDLE: Advice(
        causes=("the processor cannot prepare work as fast as the GPU does it",),
        remedies=(Remedy(text="look at what the steps do on the host: data, copies, synchronising calls"),),
        effort=Effort.HOURS,
    ),
    FindingKind.LAUNCH_BOUND: Advice(
        causes=("kernels so small that launching them takes longer than running them",),
        remedies=(
            Remedy(
                text="fewer launches",
                snippet='model = torch.compile(model, mode="reduce-overhead")  # CUDA graphs',
            ),
        ),
        effort=Effort.HOURS,
        risk=Risk.ROUNDING,
        knob="compile",
    ),
}  # fmt: skip
