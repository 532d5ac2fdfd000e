"""Keywords as words of the command line."""

from __future__ import annotations

import os
from decimal import Decimal
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Sequence, Tuple, Union

#: A file or a folder.
Path = Union[str, "os.PathLike[str]"]

#: A value as it is typed on the command line; several are joined by commas.
Value = Union[str, int, float, Sequence[Union[str, int, float]]]


class Option(NamedTuple):
    """An option of the program."""

    #: The word on the command line, such as `--min`.
    word: str
    #: flag, choice, path, integer, number or text
    kind: str
    #: Whether it may be given several times.
    repeats: bool
    #: Whether its value may be left out.
    bare: bool


class Command(NamedTuple):
    """A command of the program."""

    options: Dict[str, Option]
    #: The names of the arguments without an option; `trace` or `traces` stands for the recordings.
    positionals: Tuple[str, ...]
    #: The name of the module in `answers` that has the type of its document, and the id of its schema.
    document: Tuple[str, str]
    formats: Tuple[str, ...]


def text(value: Any) -> str:
    """A value as the program reads it: numbers in decimal notation."""
    if isinstance(value, bool):
        raise TypeError("a value is expected, not True or False")
    if isinstance(value, float):
        return format(Decimal(repr(value)), "f")
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def several(value: Any) -> List[str]:
    """The values of an argument that takes several."""
    return [text(value)] if isinstance(value, (str, int, float, os.PathLike)) else [text(one) for one in value]


def words(name: str, command: Command, given: Mapping[str, Any], traces: Iterable[str] = ()) -> List[str]:
    """The words of a command, as a person would type them: the recordings, then the options in the order of help.

    Keywords whose value is None or False are left out.
    """
    unknown = [keyword for keyword in given if keyword not in command.options and keyword not in command.positionals]
    if unknown:
        known = ", ".join([*(p for p in command.positionals if p not in ("trace", "traces")), *command.options])
        raise TypeError(f"{name} has no keyword {unknown[0]!r}; it has {known}")
    places: List[str] = []
    for positional in command.positionals:
        if positional in ("trace", "traces"):
            places += traces
        elif given.get(positional) is not None:
            places += several(given[positional])
    options: List[str] = []
    for keyword, option in command.options.items():
        value = given.get(keyword)
        if value is None or value is False:
            continue
        if value is True and (option.kind == "flag" or option.bare):
            options.append(option.word)
        elif option.kind == "flag":
            raise TypeError(f"{keyword} is True or False, not {value!r}")
        else:
            values = several(value)
            for one in values if option.repeats else [",".join(values)]:
                # A value that looks like an option, or that may be left out, is joined to its option.
                is_joined = option.bare or one.startswith("-") or not one
                options += [f"{option.word}={one}"] if is_joined else [option.word, one]
    if any(place.startswith("-") for place in places):
        return [name, *options, "--", *places]
    return [name, *places, *options]
