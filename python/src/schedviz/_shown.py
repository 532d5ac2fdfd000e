"""What a notebook shows: figures and texts."""

from __future__ import annotations

import base64
import pathlib
import shlex
import tempfile
from typing import List, Optional, Sequence, Tuple

from . import _program
from ._arguments import Path, text


class Figure:
    """A figure of the program; a notebook shows it as it is."""

    def __init__(self, words: Sequence[str], told: List[str]) -> None:
        self._words = list(words)
        with tempfile.TemporaryDirectory(prefix="schedviz-") as folder:
            place = pathlib.Path(folder, "figure.svg")
            ran = _program.run([*words, "-o", str(place)], unsaid=folder)
            # Of several pages each is a file: figure-1.svg, figure-2.svg and so on.
            pages = [place] if place.exists() else sorted(place.parent.glob("figure-*.svg"), key=lambda page: int(page.stem[7:]))
            #: The pages, nearly always one.
            self.pages: Tuple[str, ...] = tuple(page.read_text(encoding="utf-8") for page in pages)
        told += [message for message in ran.warnings if message not in told]
        #: What the program warned of.
        self.messages: Tuple[str, ...] = ran.warnings
        #: The command line that draws the same.
        self.command_line: str = shlex.join(["schedviz", *words, "-o", "figure.svg"])

    @property
    def svg(self) -> str:
        """The drawing; of several pages the first."""
        return self.pages[0]

    def _repr_svg_(self) -> Optional[str]:
        # No wider than the notebook, as in the page of `schedviz report`.
        return self.svg.replace("<svg ", '<svg style="max-width:100%;height:auto" ', 1) if len(self.pages) == 1 else None

    def _repr_html_(self) -> Optional[str]:
        if len(self.pages) == 1:
            return None
        # As pictures: pages that share a document would share the names in them.
        pages = (base64.b64encode(page.encode()).decode() for page in self.pages)
        return "".join(f'<img style="max-width:100%" src="data:image/svg+xml;base64,{page}">' for page in pages)

    def save(self, path: Path) -> None:
        """Draws it into a file: .pdf, .svg or .png by its ending."""
        name = text(path)
        _program.run([*self._words, "-o", name], unsaid=name)

    def __repr__(self) -> str:
        return f"<Figure: {self.command_line}>"


class Text(str):
    """The text that the program prints; a notebook shows it as it is."""

    #: What the program warned of.
    messages: Tuple[str, ...] = ()
    #: The command line that prints the same.
    command_line: str = ""

    def __repr__(self) -> str:
        return str(self)


def printed(words: Sequence[str], told: List[str]) -> Text:
    """The text of a command."""
    ran = _program.run(words)
    told += [message for message in ran.warnings if message not in told]
    made = Text(ran.stdout.decode("utf-8", "replace").rstrip("\n"))
    made.messages, made.command_line = ran.warnings, ran.command_line
    return made
