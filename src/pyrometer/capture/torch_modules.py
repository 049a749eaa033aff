"""The program's modules: what they are called, how large they are, what their calls give and do.

Modules are held weakly: a model lives as long as it would without us.
"""

import sys
import weakref
from collections.abc import Iterable
from types import FrameType
from typing import Any

from pyrometer._native import KIND
from pyrometer.capture.torch_flops import flops_of
from pyrometer.capture.weak_names import WeakNames
from pyrometer.record.torch_run import MAX_MODULES, Module

_LOSS_ENDINGS = ("Loss", "Criterion")
_MAX_NAME_LENGTH = 400
_MAX_TENSORS = 64
_NOT_THE_PROGRAM = ("torch.", "pyrometer._native.")


class ModuleNames:
    """Names modules as their callers see them, and keeps what is known of each by name."""

    def __init__(self) -> None:
        self._names = WeakNames()
        self._roots: dict[str, weakref.ref[Any]] = {}
        self._made_in_calls: set[tuple[str, str]] = set()
        """Classes of modules that belong to nobody, by the module in whose call they were made."""
        self._known: dict[str, _Facts] = {}

    def describe(self, module: Any, parent: Any) -> tuple[str, bool]:
        """(name, whether it is a loss); ``parent`` is the module whose call this one is in, or None.

        Called by the core, straight below the program's own frame.
        """
        name = self._names.get(module)
        if name is None and parent is not None:
            name = self._name_in(parent, module)
        if name is None:
            name = self._add_root(module, sys._getframe(1))
        return name, is_loss(module)

    def name_of(self, module: Any) -> str:
        """The name of a module seen before; its class for any other."""
        return self._names.get(module) or type(module).__name__

    def learn(self, root: Any) -> None:
        """Note the sizes of a root module and all below; after a call, when lazy ones have their shape."""
        name = self._names.get(root)
        if name is None or is_traced() or (name in self._known and self._known[name].has_sizes):
            return
        for below, module in root.named_modules():
            full_name = _joined(name, below)
            if full_name not in self._known and len(self._known) >= MAX_MODULES:
                return
            self._known.setdefault(full_name, _Facts()).learn(module)

    def measure(self, module: Any, name: str, arguments: tuple[Any, ...], keywords: Any, result: Any) -> None:
        """Note what one call gave, and how much it worked."""
        if is_traced():
            return
        facts = self._known.get(name)
        if facts is None:
            if len(self._known) >= MAX_MODULES:
                return
            facts = self._known[name] = _Facts()
            facts.learn(module)
        facts.measure(module, arguments, keywords or {}, result)

    def records(self) -> tuple[Module, ...]:
        """Every module known, in the order of the models."""
        return tuple(facts.record(name) for name, facts in list(self._known.items()))

    def forget(self) -> None:
        """Begin anew."""
        self.__init__()  # type: ignore[misc]

    def _name_in(self, parent: Any, module: Any) -> str | None:
        """Of a module that was made, or put in, after its root had been seen."""
        parent_name = self._names.get(parent)
        if parent_name is None:
            return None
        # One made in the very call is made again in the next: a large model is searched once for such.
        made_in_call = (parent_name, type(module).__name__)
        modules = () if made_in_call in self._made_in_calls else parent.named_modules()
        below = next((name for name, child in modules if child is module), None)
        if below is None:
            if len(self._made_in_calls) < MAX_MODULES:
                self._made_in_calls.add(made_in_call)
            below = type(module).__name__
        name = _joined(parent_name, below)
        self._names.put(module, name)
        return name

    def _add_root(self, module: Any, frame: FrameType | None) -> str:
        name = self._free_name(variable_name(module, frame) or type(module).__name__, module)
        self._roots[name] = weakref.ref(module)
        for below, child in module.named_modules():
            # One that is a root itself, or part of another, keeps its name.
            if self._names.get(child) is None:
                self._names.put(child, _joined(name, below))
        self._names.put(module, name)
        return name

    def _free_name(self, wanted: str, module: Any) -> str:
        """Two models that live at the same time are told apart; one made anew goes on under its name."""
        candidates = [wanted, f"{wanted} ({type(module).__name__})"]
        candidates += [f"{wanted} ({number})" for number in range(2, 100)]
        for name in candidates:
            reference = self._roots.get(name)
            holder = None if reference is None else reference()
            if holder is None or holder is module:
                return name
        return f"{wanted} (more)"


class _Facts:
    __slots__ = (
        "dtype",
        "flops",
        "gradient_products",
        "has_sizes",
        "hidden",
        "input_bytes",
        "input_dtype",
        "kind",
        "measured",
        "output_bytes",
        "parameter_bytes",
        "parameters",
        "trained",
    )

    def __init__(self) -> None:
        self.kind = ""
        self.has_sizes = False
        self.parameters = 0
        self.parameter_bytes = 0
        self.dtype: str | None = None
        self.measured = 0
        self.trained = False
        """The measured calls are those that record gradients."""
        self.input_bytes: int | None = None
        self.input_dtype: str | None = None
        self.output_bytes: int | None = None
        self.flops: int | None = None
        self.gradient_products: int | None = None
        self.hidden: str | None = None

    def learn(self, module: Any) -> None:
        self.kind = type(module).__name__
        self.hidden = what_hides(module)
        with unheard():
            parameters = [parameter for parameter in module.parameters() if has_size(parameter)]
            self.parameters = sum(parameter.numel() for parameter in parameters)
            self.parameter_bytes = sum(_bytes_of(parameter) for parameter in parameters)
            self.dtype = _floating_type_of(parameters)
        self.has_sizes = True

    def measure(self, module: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], result: Any) -> None:
        trains = sys.modules["torch"].is_grad_enabled()
        if self.trained and not trains:
            return  # an evaluation's batches may be larger: calls of one kind only
        if trains and not self.trained:
            self.measured, self.input_bytes, self.output_bytes, self.flops = 0, None, None, None
            self.gradient_products = 0
        self.trained = trains
        self.measured += 1
        inputs, outputs = tensors_in((arguments, keywords)), tensors_in(result)
        with unheard():
            self.input_bytes = (self.input_bytes or 0) + sum(map(_bytes_of, inputs))
            self.input_dtype = _floating_type_of(inputs)
            self.output_bytes = (self.output_bytes or 0) + sum(map(_bytes_of, outputs))
            flops = flops_of(module, inputs, outputs)
            if trains:
                own = module.parameters(recurse=False)
                products = _any_has_gradients(inputs) + _any_has_gradients(own)
                self.gradient_products = (self.gradient_products or 0) + products
        if flops is not None:
            self.flops = (self.flops or 0) + flops

    def record(self, name: str) -> Module:
        return Module(
            name=name,
            kind=self.kind,
            parameters=self.parameters,
            parameter_bytes=self.parameter_bytes,
            dtype=self.dtype,
            measured_calls=self.measured,
            input_bytes=self.input_bytes,
            input_dtype=self.input_dtype,
            output_bytes=self.output_bytes,
            flops=self.flops,
            gradient_products=self.gradient_products,
            hidden=self.hidden,
        )


def is_loss(module: Any) -> bool:
    """Whether a module called by itself is the loss: torch's own, or one that is named so."""
    losses = sys.modules["torch.nn.modules.loss"]._Loss  # noqa: SLF001
    return isinstance(module, losses) or type(module).__name__.endswith(_LOSS_ENDINGS)


def what_hides(module: Any) -> str | None:
    """Why the modules inside cannot be seen, if they cannot."""
    if type(module).__name__ == "OptimizedModule" or getattr(module, "_compiled_call_impl", None) is not None:
        return "compiled"
    script_module = sys.modules["torch"].jit.ScriptModule
    return "scripted" if isinstance(module, script_module) else None


def variable_name(module: Any, frame: FrameType | None) -> str | None:
    """What the calling code calls the module: a variable of its, or an attribute of its ``self``."""
    while frame is not None and str(frame.f_globals.get("__name__")).startswith(_NOT_THE_PROGRAM):
        frame = frame.f_back
    if frame is None:
        return None
    local = _local_variables(frame)
    for variables in (local, frame.f_globals):
        for name, value in list(variables.items()):
            if value is module and name != "self" and not name.startswith("_"):
                return name
    attributes = _attributes_of(local.get("self"))
    for members in (attributes.get("_modules"), attributes):
        if isinstance(members, dict):
            for name, value in list(members.items()):
                if value is module:
                    return str(name)
    return None


def _attributes_of(holder: Any) -> dict[str, Any]:
    """Without a word to the object, which may answer anything."""
    try:
        attributes = object.__getattribute__(holder, "__dict__")
    except AttributeError:
        return {}
    return attributes if isinstance(attributes, dict) else {}


def _local_variables(frame: FrameType) -> dict[str, Any]:
    if frame.f_code.co_name == "<module>":
        return frame.f_globals
    if KIND == "native":
        from pyrometer._native.core import frame_locals

        return frame_locals(frame)
    return {}  # to ask in Python would keep alive what the program has let go of


def tensors_in(value: Any, levels: int = 3) -> list[Any]:
    """The tensors in a call's arguments or result, as far as they lie in tuples, lists and mappings."""
    tensor = sys.modules["torch"].Tensor
    found: list[Any] = []
    waiting = [(value, levels)]
    while waiting and len(found) < _MAX_TENSORS:
        item, left = waiting.pop(0)
        if isinstance(item, tensor):
            found.append(item)
        elif left and isinstance(item, (tuple, list)):
            waiting += [(part, left - 1) for part in item[:_MAX_TENSORS]]
        elif left and isinstance(item, dict):
            waiting += [(part, left - 1) for part in list(item.values())[:_MAX_TENSORS]]
    return found


def unheard() -> Any:
    """A context in which only torch hears what is asked of tensors: no class or mode of the program's."""
    return sys.modules["torch"]._C.DisableTorchFunction()  # noqa: SLF001


def is_traced() -> bool:
    """Whether torch takes note of every size that is asked for, as a part of the program."""
    state = sys.modules["torch"]._C  # noqa: SLF001
    return state._get_tracing_state() is not None or state._len_torch_dispatch_stack() > 0  # noqa: SLF001


def token_shape(given: Any) -> tuple[int, int] | None:
    """(sequences, tokens) of the first tensor in what a module is given, if it holds tokens."""
    tensors = tensors_in(given, 2)
    if not tensors or is_traced():
        return None
    with unheard():
        first = tensors[0]
        return tuple(first.shape) if first.dim() == 2 and not first.is_floating_point() else None


def _bytes_of(tensor: Any) -> int:
    strided = sys.modules["torch"].strided
    # How much another layout holds, only its own class knows.
    return int(tensor.numel() * tensor.element_size()) if tensor.layout is strided else 0


def _floating_type_of(tensors: Iterable[Any]) -> str | None:
    """The one that they are of, ``mixed`` for several, None without any."""
    found = {tensor.dtype for tensor in tensors if tensor.dtype.is_floating_point}
    if len(found) > 1:
        return "mixed"
    return str(found.pop()).removeprefix("torch.") if found else None


def _any_has_gradients(tensors: Iterable[Any]) -> bool:
    return any(tensor.requires_grad for tensor in tensors)


def has_size(parameter: Any) -> bool:
    """Lazy ones have none before their first call."""
    is_lazy = sys.modules["torch"].nn.parameter.is_lazy
    return not is_lazy(parameter)


def _joined(name: str, below: str) -> str:
    return (f"{name}.{below}" if below else name)[-_MAX_NAME_LENGTH:]
