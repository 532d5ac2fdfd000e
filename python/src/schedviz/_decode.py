"""Documents of the program as dataclasses."""

from __future__ import annotations

import dataclasses
import typing
from typing import Any, Callable, Dict, List, Literal, Optional, Tuple, Union

from ._program import Ran, SchedvizError

Decoder = Callable[[Any], Any]


#: The maximum number of items of a list that the text of a record shows.
_SHOWN = 3


class Record:
    """A part of a document."""

    def __repr__(self) -> str:
        fields = ((f.name, getattr(self, f.name)) for f in dataclasses.fields(self))  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(f'{name}={_short(value)}' for name, value in fields)})"


def _short(value: Any) -> str:
    if isinstance(value, list) and len(value) > _SHOWN:
        return f"[{', '.join(map(_short, value[:_SHOWN]))}, … {len(value)} in all]"
    if isinstance(value, list):
        return f"[{', '.join(map(_short, value))}]"
    return repr(value)


class Answer(Record):
    """What all answers have besides the fields of their document."""

    #: The document as the program wrote it, with fields that this version of the module does not know.
    document: typing.ClassVar[Dict[str, Any]]
    #: What the program warned of: losses, doubts, runs left out.
    messages: typing.ClassVar[Tuple[str, ...]]
    #: The command line that gives the same.
    command_line: typing.ClassVar[str]
    #: 0, or 2 where a given limit is exceeded, or 3 where that cannot be judged.
    exit_status: typing.ClassVar[int]


def answer(kind: Any, schema: str, document: Dict[str, Any], ran: Ran) -> Any:
    """The answer of a run of the program."""
    if document.get("schema") != schema:
        raise SchedvizError(
            f"the program answers with {document.get('schema')}, this module reads {schema}: they are of different versions",
            ran.exit_status,
            ran.command_line,
        )
    made = decoder(kind)(document)
    told = {"document": document, "messages": ran.warnings, "command_line": ran.command_line, "exit_status": ran.exit_status}
    for name, value in told.items():
        object.__setattr__(made, name, value)
    return made


_decoders: Dict[Any, Decoder] = {}


def decoder(hint: Any) -> Decoder:
    """The function that makes a value of this type."""
    try:
        return _decoders[hint]
    except KeyError:
        # A type can hold values of itself.
        _decoders[hint] = lambda value: _decoders[hint](value)
        _decoders[hint] = made = _made(hint)
        return made


def _made(hint: Any) -> Decoder:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        return _of_class(hint)
    if origin is list:
        one = decoder(args[0])
        return lambda value: [one(item) for item in value]
    if origin is tuple:
        each = [decoder(arg) for arg in args]
        return lambda value: tuple(one(item) for one, item in zip(each, value))
    if origin is dict:
        one = decoder(args[1])
        return lambda value: {key: one(item) for key, item in value.items()}
    if origin is Union:
        return _of_union(args)
    return lambda value: value


def _of_class(kind: Any) -> Decoder:
    hints = typing.get_type_hints(kind)
    fields = [(f.metadata.get("name", f.name), f.name, decoder(hints[f.name])) for f in dataclasses.fields(kind)]

    def made(value: Dict[str, Any]) -> Any:
        return kind(**{attribute: one(value[name]) for name, attribute, one in fields if name in value})

    return made


def _of_union(args: Tuple[Any, ...]) -> Decoder:
    classes = [(_mark(arg), decoder(arg)) for arg in args if dataclasses.is_dataclass(arg)]
    others = [decoder(arg) for arg in args if not dataclasses.is_dataclass(arg) and arg is not type(None)]

    def made(value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, dict) and classes:
            fitting = [one for mark, one in classes if mark(value)]
            # A variant that this version does not know stays as it is.
            return fitting[0](value) if fitting else value
        return others[0](value) if others else value

    return made


def _mark(kind: Any) -> Callable[[Dict[str, Any]], bool]:
    """Whether a document is this variant: it has its constants, and the fields that it must have."""
    hints = typing.get_type_hints(kind)
    fields = dataclasses.fields(kind)
    required = [f.metadata.get("name", f.name) for f in fields if f.default is f.default_factory is dataclasses.MISSING]
    constants: List[Tuple[str, Optional[Tuple[Any, ...]]]] = [
        (f.metadata.get("name", f.name), typing.get_args(hints[f.name]))
        for f in fields
        if typing.get_origin(hints[f.name]) is Literal and len(typing.get_args(hints[f.name])) == 1
    ]
    return lambda value: all(n in value for n in required) and all(value.get(n) in (v or ()) for n, v in constants)


def class_of(schema: str) -> str:
    """The name of the class of a document: `WorkconsAnswer` of `schedviz/workcons/2`."""
    return "".join(part.capitalize() for part in schema.split("/")[1].split("-")) + "Answer"
