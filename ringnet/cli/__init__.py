"""The command line: the commands, each in a file of its own that is imported when it is used, and the exit codes.

Exit codes: 0 all is well, 1 a bug in ringnet, 2 a mistake in what was given, 3 a run that cannot finish, 4 a
sum that is wrong, 5 some points of a sweep failed, 130 stopped by Ctrl-C.

A new command is a line in `COMMANDS` and a file of its name here, with the function ``command``, whose parameters are
the options, whose docstring is the help and which returns the exit code, and an ``EXAMPLE``.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, wraps
from importlib import import_module
from itertools import pairwise
from shlex import quote
from typing import Annotated, Any, ParamSpec

import typer
from typer.core import TyperCommand, TyperGroup

from ringnet._version import __version__
from ringnet.documents.text import one_line
from ringnet.errors import Fault, InputError, RingnetError, closest

P = ParamSpec("P")

#: Every command, in the order of the help, with the first line of its own help.
COMMANDS = {
    "run": "Simulate a scenario: print the answer, write tables and plots.",
    "check": "Find every mistake in a scenario, and show what would run.",
    "step": "Time a step of training, computation over communication, and say what is best of a sweep.",
    "blame": "Say who holds a run back: what it gains from each link, card and worker that is made better.",
    "whatif": "Say which change buys most: a scenario with each of several changes, ranked.",
    "compare": "Compare algorithms over message sizes: which one to use, from which size on, and by how much.",
    "nccl": "Say what NCCL would choose by its own cost model, for each size, and what a simulation says instead.",
    "numerics": "Show what rounding does to the sum: the error by algorithm and element type, and who holds the "
    "same bits.",
    "export": "Write the schedule of a scenario for other tools, or the run of it as a trace.",
    "plot": "Draw the plots of results again, without simulating.",
    "report": "Write one page of results: to be opened in a browser, without a network.",
    "diff": "Show what was changed, and what that changed in the answer.",
    "init": "Write a commented scenario to start from.",
    "draw": "Draw the network, the busiest link standing out, and how much each worker sends to each other one.",
    "network": "List the links of a scenario's network, or say what another tool's network file holds and leaves out.",
    "list": "List the names that a scenario can choose from, or what the columns of the tables mean.",
    "show": "Show a machine: its numbers, where each comes from, and a drawing.",
    "schema": "Print the JSON Schema of scenarios, for editors.",
    "logs": "Show what logs of benchmarks hold, and what is wrong with them.",
    "calibrate": "Fit latency and bandwidth to logs of one machine, and say how far to trust them.",
    "predict": "Predict times that were not measured, each with a range.",
    "measure": "Time a real ring all-reduce, here or under MPI, and check its sums against the simulator's.",
}

#: Set to anything, this variable makes every error show where it comes from.
DEBUG = "RINGNET_DEBUG"

BUG = RingnetError.exit_code
INTERRUPTED = 130
#: What typer raises where it cannot read a command line, whichever version it is.
USAGE_ERROR: Any = typer.BadParameter.__mro__[1]
#: What a shell reports of a program that wrote to a pipe which nobody reads any more.
PIPE_CLOSED = 141


#: What asks for help.
HELP = {"help_option_names": ["-h", "--help"]}


class LazyCommand(TyperCommand):
    """A command of which only the name and a line of help are known until it is called."""

    def get_short_help_str(self, limit: int = 0) -> str:
        """Return the line of help whole, however long: it goes on in a second line rather than in dots."""
        return self.help or ""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Import the command, and let it read its arguments."""
        with _errors_told(str(self.name)):
            command = load(str(self.name))
        try:
            context = command.make_context(info_name, _with_values(args), parent, allow_extra_args=True, **extra)
            if context.args:
                raise USAGE_ERROR(str(_too_much(context.args, args, command)), context)
        except USAGE_ERROR as error:
            raise USAGE_ERROR(_with_what_is_right(error, args, command), error.ctx) from None
        return context


def _with_what_is_right(error: Any, args: list[str], command: Any) -> str:
    """Return what typer says of a command line, with what would be right; pydantic's words of a value in ringnet's."""
    option, parameter = getattr(error, "option_name", ""), getattr(error, "param", None)
    if hasattr(error, "possibilities"):  # of an option that there is not
        return f"{error.message}{_meant(option, args, command)}"
    if option:
        right = _form(option, command, args)
    elif parameter is None:
        return str(error.message)
    elif hasattr(error, "param_type"):  # of what is missing
        right = import_module(f"{__name__}.{command.name}").EXAMPLE
    else:
        pairs = [(*arg.split("=", 1), after) for arg, after in pairwise([*args, ""])]
        typed = ", ".join(value for name, value, *_ in pairs if name in parameter.opts)
        message = error.message.partition(",")[0].replace("Input should be", "this should be")
        error.message = f"{message}; got {one_line(typed)}"
        right = f"{parameter.opts[0]} 2"
    return f"{error.format_message().rstrip('.')}; right would be: {right}"


def _form(option: str, command: Any, args: list[str]) -> str:
    """Return how an option is written, with the sign of its value if it takes one: ``--plots=no`` is ``--no-plots``."""
    known = next((one for one in command.params if option in (*one.opts, *one.secondary_opts)), None)
    if known is None or not known.is_flag:
        return option if known is None else f"{option} {known.metavar}"
    is_off = any(arg.lower() in {f"{option}={word}" for word in ("no", "off", "false", "0")} for arg in args)
    return known.secondary_opts[0] if is_off and known.secondary_opts else option


def _too_much(words: list[str], args: list[str], command: Any) -> Fault:
    """Return the fault of words for which a command has no place: what stands before them says what was meant."""
    word = words[0]
    place = len(args) - 1 - args[::-1].index(word)
    first, before = ["", "", *args][place : place + 2]
    options = {name: one for one in command.params for name in (*one.opts, *one.secondary_opts) if name[:2] == "--"}
    if before == "--html":
        page = f"{word.rpartition('.')[0] or 'report'}.html"
        return Fault("a page is a file that ends in .html", "--html", value=repr(word), right=f"--html {quote(page)}")
    if before in options and options[before].is_flag:
        return Fault("the option takes no value", before, value=word, right=before)
    if first in options and options[first].multiple:
        right = _several(first, [before, *words], is_list="," in options[first].metavar)
        return Fault("the option takes one value", first, value=" ".join([before, *words]), right=right)
    changes = "--if" if command.name == "whatif" else "--set"
    if "=" in word and changes in options:
        right = _several(changes, words, is_list=False)
        return Fault(f"a key is changed by {changes}", str(command.name), value=" ".join(words), right=right)
    wanted = " ".join(one.metavar for one in command.params if one.param_type_name == "argument")
    right = f"ringnet {command.name} {wanted}".strip()
    return Fault("a word too many", str(command.name), value=word, right=right)


def _several(option: str, words: list[str], *, is_list: bool) -> str:
    """Return how several values of an option are written: each word that has an equals sign begins a change.

    >>> _several("--if", ["workers=8", "and", "message=1MiB", "network.latency=1", "us"], is_list=False)
    "--if 'workers=8 and message=1MiB' --if 'network.latency=1 us'"
    """
    if is_list:
        return f"{option} {','.join(words)}"
    changes: list[list[str]] = []
    for before, word in pairwise(["", *words]):
        if changes and (before == "and" or "=" not in word):
            changes[-1].append(word)
        else:
            changes.append([word])
    return " ".join(f"{option} {quote(' '.join(change))}" for change in changes)


#: Keys that are asked for by other names than theirs.
MEANT = {
    "sizes": "sweep.over.message=[1 KiB, 1 MiB]",
    "size": "message=1 MiB",
    "sweep": "sweep.over.workers=[4, 8]",
}


def _meant(option: str, args: list[str], command: Any) -> str:
    """Return what would be right in place of an option that a command has not.

    That is one like it, a key of the scenario, or another command: ``--dry-run`` is `ringnet check`.
    """
    name = option.strip("-").replace("-", "_")
    known = {word for one in command.params for word in (*one.opts, *one.secondary_opts) if word[:2] == "--"}
    alike = closest(option, known, alike=0.8)
    if "--set" in known and not alike:
        from ringnet.cli.schema import KEPT  # noqa: PLC0415 -- of a mistake only

        keys = json.loads(KEPT.read_text(encoding="utf-8"))["properties"]
        path = {key: key for key, one in keys.items() if "$ref" not in one}
        path |= {key: f"network.{key}" for key in ("bandwidth", "latency", "topology")}
        following = "".join(args[args.index(option) + 1 :][:1]) if option in args else ""
        value = following if following[:1] not in {"", "-"} else "..."
        swept, is_pair, values = following.partition("=")
        if name == "sweep" and is_pair:
            path, value = {name: f"sweep.over.{swept}"}, f"[{values.strip('[]')}]"
        alike = f"--set {quote(f'{path[name]}={value}')}" if name in path else ""
        alike = alike or (f"--set {quote(MEANT[name])}" if name in MEANT else "")
        instead = closest(option.strip("-"), COMMANDS.keys() - {command.name}, alike=1)
        files = [quote(arg) for arg in args if arg[:1] != "-"][:1]
        alike = alike or (" ".join(["ringnet", instead, *files]) if instead else "")
    return f"; right would be: {alike}" if alike else f"; ringnet {command.name} -h has those that there are"


@cache
def load(name: str) -> Any:
    """Return a command, imported and with its options read off its parameters."""
    # What is imported stays: to look again and again for garbage in it takes a tenth of the start.
    gc.disable()
    chapter = import_module(f"{__name__}.{name}")
    gc.freeze()
    gc.enable()
    alone = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings=HELP)
    alone.command(name, epilog=f"Example: {chapter.EXAMPLE}")(_with_exit_code(name, chapter.command))
    command = typer.main.get_command(alone)
    for argument in command.params:
        if argument.param_type_name == "argument":
            _name_plainly(argument)
    return command


def _with_values(args: list[str]) -> list[str]:
    """Give ``--html`` an empty value where no name of a page follows it: it may stand before a scenario.

    >>> _with_values(["--html", "a.yaml"]), _with_values(["a.yaml", "--html", "a.html"]), _with_values([])
    (['--html=', 'a.yaml'], ['a.yaml', '--html', 'a.html'], [])
    """
    following = [*args[1:], ""]
    return [
        "--html=" if arg == "--html" and not name.endswith((".html", ".htm")) else arg
        for arg, name in zip(args, following, strict=False)
    ]


def _name_plainly(argument: Any) -> None:
    """Let an argument stand in the help by its name, ``SCENARIO``, without braces and a type of Python."""
    name = f"{argument.metavar}{'...' if argument.nargs != 1 else ''}"
    argument.get_usage_pieces = lambda ctx: [name if argument.required else f"[{name}]"]
    argument.display_type_rich = lambda ctx: ""


class LazyGroup(TyperGroup):
    """All commands, none of them imported: pandas alone takes longer than the help may."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, line in COMMANDS.items():
            self.add_command(LazyCommand(name, help=line))


app = typer.Typer(
    cls=LazyGroup,
    name="ringnet",
    help="How long does an all-reduce take on a network, which link is slowest, and is the sum right?",
    no_args_is_help=True,
    context_settings=HELP,
    epilog="To begin: ringnet init ring.yaml writes a scenario, ringnet run ring.yaml simulates it; "
    "ringnet run --help has the rest.",
    rich_markup_mode=None,  # rich doubles the time of --help, and frames errors in boxes
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line; no message prints what it was given as it is."""
    # ringnet's models use no plugins; pydantic would look for some in every package that is installed.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        exit_code = app(standalone_mode=False)
    except USAGE_ERROR as error:
        if error.ctx and error.ctx.parent is None:
            what = error.message.partition(". Did you mean")[0].rstrip(".")
            error = USAGE_ERROR(f"{what}; {_instead(sys.argv[1:])}", error.ctx)
        error.message = "\n".join(map(one_line, error.message.splitlines()))
        error.show()
        exit_code = error.exit_code
    gc.freeze()  # to look for garbage in all that is about to end takes longer than a small run
    sys.exit(exit_code)


def _instead(words: list[str]) -> str:
    """Say what would be right where no command is named, or an option before it."""
    first, *others = [word for word in words if word != "--debug"]
    if first[:1] != "-" and (meant := closest(first, [*COMMANDS, "--help", "--version"])):
        right = [meant, *others] if meant in COMMANDS else [*others[:1], meant]
        return f"right would be: ringnet {' '.join(map(quote, right))}"
    named = [word for word in words if word in COMMANDS]
    options = [word for word in words if word[:2] == "--" and word.partition("=")[0] != "--debug"]
    if named and options:
        known = {word for one in load(named[0]).params for word in one.opts}
        if options[0].partition("=")[0] in known:
            return f"right would be: ringnet {named[0]} ... {quote(options[0])}"
    files = [quote(word) for word in words if word.endswith((".yaml", ".yml"))]
    return f"right would be: ringnet run {files[0]}" if files else "ringnet --help has those that there are"


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ringnet {__version__}")
        raise typer.Exit


def _set_debug(wanted: bool) -> None:
    if wanted:
        os.environ[DEBUG] = "1"


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", callback=_set_debug, help=f"Show where an error comes from, as {DEBUG}=1."),
    ] = False,
) -> None:
    """Options before the command."""


def _with_exit_code(name: str, command: Callable[P, int]) -> Callable[P, None]:
    """Turn a command that returns an exit code, or raises, into one that ends with the right code."""

    @wraps(command)
    def ending(*args: P.args, **kwargs: P.kwargs) -> None:
        with _errors_told(name):
            exit_code = command(*args, **kwargs)
        raise typer.Exit(exit_code)

    return ending


@contextmanager
def _errors_told(name: str) -> Iterator[None]:
    """Turn errors into words on standard error and an exit code, no traceback for a user's mistake."""
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        raise typer.Exit(_tell(error, name)) from None


def _tell(error: Exception | KeyboardInterrupt, name: str) -> int:
    if isinstance(error, BrokenPipeError):
        return _stop_writing()
    if os.environ.get(DEBUG):
        traceback.print_exception(error)
    from ringnet.cli.printing import complain  # noqa: PLC0415 -- takes longer than the help

    text, exit_code = _in_words(_of_options(error, name) if isinstance(error, InputError) else error)
    complain(text)
    return exit_code


def _of_options(error: InputError, name: str) -> InputError:
    """Name the options of a command where rooms that Python calls, too, name the arguments that these stand for."""
    options = {word.lstrip("-").replace("-", "_"): word for one in load(name).params for word in one.opts}
    options |= {one.name: one.opts[0] for one in load(name).params}

    def typed(fault: Fault) -> Fault:
        file, path = fault.file, fault.path
        if not fault.line:
            file, path = options.get(file, file), path if file else options.get(path, path)
        parts = vars(replace(fault, file=file, path=path))
        # Any text of a user's may have a newline in it, and what is made of it, too; a fault is one line.
        told: dict[str, Any] = {name: one_line(part) if isinstance(part, str) else part for name, part in parts.items()}
        return Fault(**told)

    return InputError(*map(typed, error.faults))


def _in_words(error: Exception | KeyboardInterrupt) -> tuple[str, int]:
    match error:
        case RingnetError():
            return str(error), error.exit_code
        case KeyboardInterrupt() | typer.Abort():
            return "stopped", INTERRUPTED
        case MemoryError():
            return "out of memory; `ringnet check` says how much a run takes", InputError.exit_code
        case OSError():
            parts = (error.filename, error.strerror)
            return ": ".join(one_line(str(part)) for part in parts if part), InputError.exit_code
        case _:
            return _bug(error), BUG


def _bug(error: BaseException) -> str:
    what = " ".join(f"this is a bug in ringnet: {type(error).__name__}: {error}".split())
    return f"{what}\n  Please report it, with the scenario and what the same command says with {DEBUG}=1."


def _stop_writing() -> int:
    # Python flushes standard output once more when it ends, and would complain of the pipe then.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return PIPE_CLOSED
