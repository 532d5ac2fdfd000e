"""Running the program: where it is, what it says, and how it fails."""

from __future__ import annotations

import importlib.metadata
import os
import shlex
import shutil
import signal
import subprocess
import sys
import warnings
from typing import List, NamedTuple, NoReturn, Optional, Sequence, Tuple


class SchedvizWarning(UserWarning):
    """What the program says about a trace besides its answer: losses, doubts, runs left out."""


class SchedvizError(Exception):
    """The program's message. `exit_status` is None where it did not end by itself; `command_line` can be pasted into a shell."""

    def __init__(self, message: str, exit_status: Optional[int] = None, command_line: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.exit_status = exit_status
        self.command_line = command_line


class ArgumentError(SchedvizError, ValueError):
    """A keyword has a value that the program refuses, or two of them contradict each other."""


class ProgramNotFound(SchedvizError):
    """The program `schedviz` is not there: the module was not installed from its wheel."""


class ArrowMissing(SchedvizError, ImportError):
    """Tables need pyarrow, which is not installed."""


class Ran(NamedTuple):
    """What a run of the program gave."""

    stdout: bytes
    warnings: Tuple[str, ...]
    exit_status: int
    command_line: str


def program() -> str:
    """The path of the program: `$SCHEDVIZ_PROGRAM`, else the one that the wheel has installed, else the one on PATH."""
    chosen = os.environ.get("SCHEDVIZ_PROGRAM")
    if chosen:
        return chosen
    try:
        files = importlib.metadata.distribution("schedviz").files or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    installed = [str(file.locate()) for file in files if file.name == "schedviz" and file.parent.name == "bin"]
    for path in [*installed, shutil.which("schedviz")]:
        if path and os.access(path, os.X_OK):
            return os.path.realpath(path)
    raise ProgramNotFound("there is no program schedviz: install the wheel, or name the program in $SCHEDVIZ_PROGRAM")


def run(words: Sequence[str], unsaid: Optional[str] = None) -> Ran:
    """Runs the program with these words.

    Its warnings become Python's, at the line outside of this module that asked. `unsaid` marks messages that are none, such as the name of a
    file that the caller wanted. An error of the program is raised; the exit statuses of limits (2 and 3) are returned.
    """
    path = program()
    line = shlex.join(["schedviz", *words])
    try:
        ran = subprocess.run([path, *words], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except OSError as error:
        raise ProgramNotFound(f"{path}: {error.strerror}", command_line=line) from error
    messages = _messages(ran.stderr.decode("utf-8", "replace"))
    if ran.returncode in (0, 2, 3):
        told = tuple(message for message in messages if unsaid is None or unsaid not in message)
        for message in told:
            warnings.warn(SchedvizWarning(message), stacklevel=_depth())
        return Ran(ran.stdout, told, ran.returncode, line)
    _fail(ran.returncode, messages, line)


def _fail(status: int, messages: List[str], line: str) -> NoReturn:
    if status < 0:
        raise SchedvizError(f"the program was ended by {signal.Signals(-status).name}", None, line)
    message = messages[-1] if messages else f"the program ended with status {status}"
    if message.startswith("error: "):
        # The command line was refused; its usage says nothing in Python.
        told = message[len("error: ") :].split("\n\nUsage:")[0].split("\n\nFor more information")[0]
        raise ArgumentError(told, status, line)
    for earlier in messages[:-1]:
        warnings.warn(SchedvizWarning(earlier), stacklevel=_depth())
    raise SchedvizError(message, status, line)


def _messages(stderr: str) -> List[str]:
    """The messages on standard error; a line without the program's name goes on with the one before."""
    messages: List[str] = []
    for line in stderr.splitlines():
        begins = line.startswith("schedviz: ")
        if begins or not messages:
            messages.append(line[len("schedviz: ") :] if begins else line)
        else:
            messages[-1] += "\n" + line
    return [message.strip() for message in messages if message.strip()]


def _depth() -> int:
    """The stack level of the first caller outside of this package, for a warning that the calling function gives."""
    inside = os.path.dirname(__file__)
    depth, frame = 1, sys._getframe(1)
    while frame.f_back is not None and os.path.dirname(frame.f_code.co_filename) == inside:
        depth, frame = depth + 1, frame.f_back
    return depth
