"""XML read with suspicion: bounded, no document types, no entities; each element knows where it stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NoReturn
from xml.parsers import expat

from ringnet.errors import Fault, InputError

#: Bounds, far beyond what any server has.
MOST_BYTES, MOST_ELEMENTS, DEEPEST = 4 << 20, 50_000, 40
#: Characters of a value that a message shows.
SHOWN = 60


@dataclass(frozen=True)
class Element:
    """An element: its attributes, its line from 1, the tags around it, and what is in it."""

    tag: str
    attributes: Mapping[str, str]
    line: int
    around: tuple[str, ...] = ()
    children: list[Element] = field(default_factory=list)

    def of(self, *tags: str) -> Iterator[Element]:
        """Yield the elements right inside that have one of these tags, in order."""
        return (child for child in self.children if child.tag in tags)

    def walk(self) -> Iterator[Element]:
        """Yield the element and everything in it, as it stands in the file."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def path(self) -> str:
        """Where it stands: ``system > cpu > pci``."""
        return " > ".join((*self.around, self.tag))

    def fault(self, file: str, message: str, value: str = "", right: str = "") -> Fault:
        """Return a `Fault` with line and element."""
        return Fault(message, self.path, file, self.line, shown(value), right)


def parse_xml(content: bytes, file: str) -> Element:
    """Read a document.

    Raises
    ------
    InputError
        It is not XML, ends too early, is too large or too deep, or declares a document type or an entity; with line.

    Examples
    --------
    >>> top = parse_xml(b'<system><cpu numaid="0"/></system>', "topology.xml")
    >>> [(child.path, child.attributes) for child in top.of("cpu")]
    [('system > cpu', {'numaid': '0'})]
    """
    return _Parser(file).parse(content)


class _Parser:
    """Expat's events to elements."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.open: list[Element] = []
        self.n_elements = 0
        self.top: Element | None = None
        self.expat = expat.ParserCreate()
        self.expat.StartElementHandler, self.expat.EndElementHandler = self._start, self._end
        self.expat.StartDoctypeDeclHandler = self.expat.EntityDeclHandler = self._declares

    def parse(self, content: bytes) -> Element:
        if len(content) > MOST_BYTES:
            self._refuse("the file is too large", right=f"at most {MOST_BYTES:,} bytes")
        try:
            self.expat.Parse(content, True)
        except expat.ExpatError as error:
            self._refuse(f"not XML, or cut off: {expat.errors.messages[error.code]}")
        except (LookupError, ValueError) as error:  # an encoding that Python does not have
            self._refuse(f"the text cannot be decoded: {error}")
        assert self.top is not None  # a document without any element is an error to expat
        return self.top

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self.n_elements += 1
        if self.n_elements > MOST_ELEMENTS:
            self._refuse("too many elements", right=f"at most {MOST_ELEMENTS:,}")
        if len(self.open) >= DEEPEST:
            self._refuse("nested too deep", right=f"at most {DEEPEST} levels")
        around = (*self.open[-1].around, self.open[-1].tag) if self.open else ()
        element = Element(shown(tag), attributes, self.expat.CurrentLineNumber, around)
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.top = element
        self.open.append(element)

    def _end(self, _tag: str) -> None:
        self.open.pop()

    def _declares(self, name: str, *_: object) -> None:
        message = "a document type or an entity is declared: such files are not read"
        self._refuse(message, shown(str(name)), "a file without <!DOCTYPE")

    def _refuse(self, message: str, value: str = "", right: str = "") -> NoReturn:
        path = self.open[-1].path if self.open else ""
        raise InputError(Fault(message, path, self.file, self.expat.CurrentLineNumber, value, right))


def shown(text: str) -> str:
    r"""Make a text of the file fit for one line of a message.

    >>> shown("a\x1bb" + 80 * "c")[:8]
    'a\\x1bbcc'
    """
    line = "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text[: SHOWN + 1])
    return line if len(line) <= SHOWN else line[: SHOWN - 3] + "..."
