"""XML read with suspicion: bounded, no document types, no entities; each element knows where it stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn
from xml.parsers import expat

from ringnet.documents.text import clip
from ringnet.errors import Fault, InputError


class XmlKind(NamedTuple):
    """A kind of file: the most that it holds, far beyond what it needs, and what may stand in what.

    Parameters
    ----------
    n_bytes, n_elements, depth : int
    inside : mapping of str to str, or None
        The tag around each tag, empty for the outermost; None: any element may stand anywhere.
    """

    n_bytes: int
    n_elements: int
    depth: int
    inside: Mapping[str, str] | None = None


@dataclass(eq=False, slots=True)
class XmlElement:
    """An element: its attributes, its line from 1, the tags around it, and what is in it."""

    tag: str
    attributes: Mapping[str, str]
    line: int
    around: tuple[str, ...] = ()
    children: list[XmlElement] = field(default_factory=list)

    def of(self, *tags: str) -> Iterator[XmlElement]:
        """Yield the elements right inside that have one of these tags, in order."""
        return (child for child in self.children if child.tag in tags)

    @property
    def path(self) -> str:
        """Where it stands: ``system > cpu > pci``."""
        return " > ".join((*self.around, self.tag))

    def fault(self, file: str, message: str, value: str = "", right: str = "") -> Fault:
        """Return a `Fault` with line and element."""
        return Fault(message, self.path, file, self.line, clip(value), right)


def parse_xml(content: bytes, file: str, kind: XmlKind) -> XmlElement:
    """Read a document.

    Parameters
    ----------
    content : bytes
    file : str
        Name for messages.
    kind : XmlKind

    Raises
    ------
    InputError
        It is not XML, ends too early, is too large or too deep, has an element where none may stand, or declares a
        document type or an entity; with line.

    Examples
    --------
    >>> top = parse_xml(b'<system><cpu numaid="0"/></system>', "topology.xml", XmlKind(1000, 10, 5))
    >>> [(child.path, child.attributes) for child in top.of("cpu")]
    [('system > cpu', {'numaid': '0'})]
    """
    return _Parser(file, kind).parse(content)


class _Parser:
    """Expat's events to elements."""

    def __init__(self, file: str, kind: XmlKind) -> None:
        self.file, self.kind = file, kind
        self.open: list[XmlElement] = []
        #: The tags around what comes next: siblings share them.
        self.around: list[tuple[str, ...]] = [()]
        self.n_elements = 0
        self.top: XmlElement | None = None
        self.expat = expat.ParserCreate()
        self.expat.StartElementHandler, self.expat.EndElementHandler = self._start, self._end
        self.expat.StartDoctypeDeclHandler = self.expat.EntityDeclHandler = self._declares

    def parse(self, content: bytes) -> XmlElement:
        if len(content) > self.kind.n_bytes:
            self._refuse("the file is too large", right=f"at most {self.kind.n_bytes:,} bytes")
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
        if self.n_elements > self.kind.n_elements:
            self._refuse("too many elements", right=f"at most {self.kind.n_elements:,}")
        if len(self.open) >= self.kind.depth:
            self._refuse("nested too deep", right=f"at most {self.kind.depth} levels")
        inside, around = self.kind.inside, self.around[-1]
        if inside is not None and inside.get(tag) != (around[-1] if around else ""):
            self._refuse("an element that has no place here", f"<{clip(tag)}>", " > ".join(inside))
        element = XmlElement(clip(tag), attributes, self.expat.CurrentLineNumber, around)
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.top = element
        self.open.append(element)
        self.around.append((*around, element.tag))

    def _end(self, _tag: str) -> None:
        self.open.pop()
        self.around.pop()

    def _declares(self, name: str, *_: object) -> None:
        message = "a document type or an entity is declared: such files are not read"
        self._refuse(message, clip(str(name)), "a file without <!DOCTYPE")

    def _refuse(self, message: str, value: str = "", right: str = "") -> NoReturn:
        path = self.open[-1].path if self.open else ""
        raise InputError(Fault(message, path, self.file, self.expat.CurrentLineNumber, value, right))
