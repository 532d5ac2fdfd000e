"""Opened recordings."""

from __future__ import annotations

import importlib
import json
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from . import _arguments, _decode, _program, _shown, _spec, _tables
from ._questions import Questions
from ._shown import Figure, Text


def recordings(paths: Sequence[Any]) -> List[str]:
    """The paths of recordings, in which those of an opened trace stand for it."""
    out: List[str] = []
    for path in paths:
        out += path.paths if isinstance(path, Trace) else [_arguments.text(path)]
    return out


def _keywords(given: Mapping[str, Any]) -> Dict[str, Any]:
    """The keywords of a call, from its local variables; recordings can be opened ones."""
    def named(value: Any) -> Any:
        if isinstance(value, Trace):
            return value.paths
        if isinstance(value, (list, tuple)):
            return [one for part in value for one in (part.paths if isinstance(part, Trace) else [part])]
        return value

    return {name: named(value) for name, value in given.items() if name not in ("self", "batches", "names")}


def ask(name: str, given: Mapping[str, Any], traces: Sequence[str], told: List[str]) -> Any:
    """The answer of a command as dataclasses."""
    command = _spec.COMMANDS[name]
    words = _arguments.words(name, command, _keywords(given), traces)
    ran = _program.run(_json(words))
    told += [message for message in ran.warnings if message not in told]
    try:
        document = json.loads(ran.stdout)
    except ValueError as error:
        raise _program.SchedvizError(f"the program printed no JSON: {error}", ran.exit_status, ran.command_line) from error
    module, schema = command.document
    kind = getattr(importlib.import_module(f".answers.{module}", __package__), _decode.class_of(schema))
    return _decode.answer(kind, schema, document, ran)


def _json(words: List[str]) -> List[str]:
    """The words of a command that asks for JSON."""
    at = words.index("--") if "--" in words else len(words)
    return [*words[:at], "--json", *words[at:]]


def _drawn(name: str, given: Mapping[str, Any], options: Mapping[str, Any], traces: Sequence[str]) -> List[str]:
    """The words of a command with arguments by place."""
    command = _spec.COMMANDS.get(name)
    if command is None:
        raise ValueError(f"there is no command {name!r}; there are {', '.join(_spec.COMMANDS)}")
    places = [positional for positional in command.positionals if positional not in ("trace", "traces")]
    by_place = given["given"]
    if len(by_place) > len(places):
        raise TypeError(f"{name} takes {len(places)} arguments by place, not {len(by_place)}")
    return _arguments.words(name, command, _keywords({**options, **dict(zip(places, by_place))}), traces)


class Trace(Questions):
    """One recording or several, which `schedviz.open` opens. Nothing is read before something is asked."""

    def __init__(self, paths: Sequence[str], options: Mapping[str, Any]) -> None:
        self.paths: List[str] = list(paths)
        self._options = {name: value for name, value in options.items() if value is not None and value is not False}
        self._told: List[str] = []

    @property
    def messages(self) -> Tuple[str, ...]:
        """What the program warned of so far."""
        return tuple(self._told)

    def _with(self, command: str, given: Mapping[str, Any]) -> Dict[str, Any]:
        """The keywords of a call over those that the trace was opened with."""
        own = {name: value for name, value in given.items() if value is not None and value is not False}
        known = _spec.COMMANDS[command].options if command in _spec.COMMANDS else {}
        return {**{name: value for name, value in self._options.items() if name in known}, **own}

    def _ask(self, command: str, given: Dict[str, Any]) -> Any:
        return ask(command, self._with(command, given), self.paths, self._told)

    def _table(self, table: str, given: Dict[str, Any]) -> Any:
        return _tables.read(table, self.paths, _keywords(self._with("export", given)), bool(given["batches"]), self._told)

    def _figure(self, command: str, given: Dict[str, Any]) -> Figure:
        options = self._with(command, {name: value for name, value in given.items() if name != "given"})
        return Figure(_drawn(command, given, options, self.paths), self._told)

    def text(self, command: str, *given: Any, **options: Any) -> Text:
        """The text that a command prints for people, with the options of the command."""
        return _shown.printed(_drawn(command, {"given": given}, self._with(command, options), self.paths), self._told)

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self._options.items())
        return f"schedviz.open({', '.join(map(repr, self.paths))}{options})"


def figure(command: str, *given: Any, **options: Any) -> Figure:
    """The figure of a command that takes no single trace, such as `figure("compare", base="old.*.dat", new="new.*.dat")`."""
    return Figure(_drawn(command, {"given": given}, options, []), [])


def text(command: str, *given: Any, **options: Any) -> Text:
    """The text of a command that takes no single trace, such as `text("compare", base="old.*.dat", new="new.*.dat")`."""
    return _shown.printed(_drawn(command, {"given": given}, options, []), [])
