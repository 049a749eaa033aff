"""The same command in different trees."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pyrometer.errors import UsageError
from pyrometer.experiment.experiment import Contender
from pyrometer.experiment.paced_process import Side
from pyrometer.experiment.worktrees import Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What python is to run: a script or a module, and its arguments."""

    script: str | None
    module: str | None
    arguments: tuple[str, ...] = ()


def command_in(words: Sequence[str]) -> Command:
    """The command in the words behind ``python``: ``SCRIPT ARGS`` or ``-m MODULE ARGS``."""
    if not words:
        raise UsageError("nothing to run; name a script, or -m and a module, behind --")
    if words[0] == "-m":
        if len(words) == 1:
            raise UsageError("-m needs the name of a module")
        return Command(script=None, module=words[1], arguments=tuple(words[2:]))
    if words[0].startswith("-"):
        raise UsageError(f"{words[0]!r} is no script; name one, or -m and a module, behind --")
    return Command(script=words[0], module=None, arguments=tuple(words[1:]))


def contender_in(tree: Tree, command: Command, *, here: Tree) -> Contender:
    """The command as it is run in a tree, from the folder that matches the user's own in ``here``."""
    arguments: tuple[str, ...]
    if command.module is not None:
        arguments, program_folder = ("-m", command.module), tree.folder
    else:
        script = script_in(tree, str(command.script), here)
        arguments, program_folder = (str(script.relative),), script.file.resolve().parent
    side = Side(
        name=tree.name,
        arguments=(*arguments, *command.arguments),
        folder=tree.folder,
        program_folder=program_folder,
        variables=variables_in(tree, here),
    )
    turned = (*arguments, *(turned_argument(argument, tree, here) for argument in command.arguments))
    # Called as the user typed it: it is the same program with the same arguments on both sides.
    return Contender(side=replace(side, arguments=turned, shown=side.program), tree=tree)


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A script in one of the trees."""

    file: Path
    relative: Path
    """As seen from the folder it is run in: the same words on both sides."""


def script_in(tree: Tree, script: str, here: Tree) -> Script:
    """The tree's own file, also where the user named the one ``here`` by its whole path."""
    known = Path(os.path.normpath(here.folder / script))
    if not known.is_relative_to(here.root):
        raise UsageError(f"{script!r} is outside of {here.root}, so that both sides would run the same file")
    relative = Path(os.path.relpath(known, here.folder))
    file = tree.folder / relative
    if not file.is_file():
        where = "" if tree is here or not known.is_file() else f" in {tree.name}, though there is one here"
        raise UsageError(f"there is no script {script!r}{where}")
    return Script(file=file, relative=relative)


def turned_argument(argument: str, tree: Tree, here: Tree) -> str:
    """An absolute path to a file of the working tree, also behind ``--option=``, as this tree's own file.

    Only to what this tree has as well: data that git does not know stays where it is.
    """
    value = argument.rpartition("=")[2]
    path = Path(value)
    if tree.root == here.root or not path.is_absolute() or not path.is_relative_to(here.root):
        return argument
    own = tree.root / path.relative_to(here.root)
    return argument.removesuffix(value) + str(own) if own.is_file() else argument


def variables_in(tree: Tree, here: Tree) -> dict[str, str]:
    """What is different in the environment of programs in this tree, so that they run its own code.

    ``torch.utils.cpp_extension.load()`` builds by name, in one folder for all: both sides would load the
    same build.
    """
    own = {} if tree.extensions is None else {"TORCH_EXTENSIONS_DIR": str(tree.extensions)}
    return _turned_path(tree, here) | own


def _turned_path(tree: Tree, here: Tree) -> dict[str, str]:
    """PYTHONPATH, with absolute paths into the working tree leading into this one, where it has them."""
    entries = os.environ.get("PYTHONPATH")
    if not entries or tree.root == here.root:
        return {}
    turned = [_turned_entry(entry, tree, here) for entry in entries.split(os.pathsep)]
    return {"PYTHONPATH": os.pathsep.join(turned)}


def _turned_entry(entry: str, tree: Tree, here: Tree) -> str:
    path = Path(entry)
    if not path.is_absolute() or not path.is_relative_to(here.root):
        return entry
    own = tree.root / path.relative_to(here.root)
    return str(own) if own.exists() else entry
