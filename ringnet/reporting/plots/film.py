"""A run as a film: workers in a circle with their chunks, and every chunk that moves, from one to the next."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray
from PIL import Image

from ringnet.array_types import FloatArray, IntArray
from ringnet.reporting.held import Holdings, Sent, elements_of, holding, sent
from ringnet.reporting.plots import canvas
from ringnet.reporting.plots.states import PALEST, shade, short
from ringnet.reporting.sweeps import settings
from ringnet.units import format_seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

    from ringnet.reporting.results import Results

#: Inches, dots per inch and frames in a second, unless they are asked for.
WIDTH_IN, DPI, FPS = 5.0, 110.0, 12
#: Frames of a step, of all steps, and of the end, which stays a while.
OF_A_STEP, MOST_FRAMES, OF_THE_END = 8, 240, 16
#: Inches: the circle of workers, a cell of a chunk without and with values, what a name takes, the edge.
RADIUS_IN, CELL_IN, VALUE_IN, NAME_IN, EDGE_IN = 1.6, 0.24, 0.44, 0.17, 0.12
#: Chunks that stand in a row; the share of the way to the next worker that a worker's chunks may fill.
IN_A_ROW, FILLED = 4, 0.8
#: Elements of a chunk that are written into its cell; the least cell that carries text, in inches, and its size.
MOST_VALUES, LEAST_SAID_IN, SAID_PT = 2, 0.15, 6.5


class WorkerPicture(NamedTuple):
    """One worker in the picture: the corner of each of its chunks, their cells, and what is written in them."""

    corners: FloatArray
    cells: list[Rectangle]
    said: list[Text]


def save_film(results: Results, path: Path, ending: str) -> None:
    """Write a film, as ``gif`` or with ffmpeg as ``mp4``; the same bytes whenever it is made again.

    Raises
    ------
    OSError
        The file cannot be written, or ffmpeg has failed.
    """
    with canvas.our_style():
        film = _Film(results)
        frames = [film.frame(time_s) for time_s in film.times_s()]
    if ending == "gif":
        pictures = [Image.fromarray(frame).quantize(method=Image.Quantize.FASTOCTREE) for frame in frames]
        how = {"save_all": True, "duration": 1000 // FPS, "loop": 0, "append_images": pictures[1:]}
        pictures[0].save(path, "GIF", **how)
    else:
        _save_by_ffmpeg(frames, path)


def _save_by_ffmpeg(frames: list[NDArray[np.uint8]], path: Path) -> None:
    height, width, _ = frames[0].shape
    raw = f"-f rawvideo -pix_fmt rgb24 -s {width}x{height} -framerate {FPS} -i pipe:"
    # Players want even sizes and this format of pixels; without the name of the encoder, the bytes are the same.
    made = "-vf pad=ceil(iw/2)*2:ceil(ih/2)*2 -pix_fmt yuv420p -fflags +bitexact -flags:v +bitexact -threads 1 -f mp4"
    command = ["ffmpeg", "-y", "-loglevel", "error", *raw.split(), *made.split(), str(path)]
    done = subprocess.run(
        command, input=b"".join(frame.tobytes() for frame in frames), capture_output=True, check=False
    )
    if done.returncode:
        raise OSError(done.returncode, f"ffmpeg: {done.stderr.decode(errors='replace').strip()[:200]}")


class _Film:
    """The picture, and what changes in it."""

    def __init__(self, results: Results) -> None:
        held = holding(results)
        assert held is not None  # who asks for a film has looked
        assert results.transfers is not None
        self._held, self._sent = held, sent(results.transfers, held)
        self._end_s = self._sent[-1].applied_s
        self._values = _Values(results, held, self._sent)
        n_workers, n_chunks = held.first.shape
        self._colors = canvas.chunk_colors(n_chunks)
        self._size = _cell_size(n_workers, n_chunks, has_values=bool(self._values))
        self.figure, self._ax = _empty(results, self._size, n_workers, n_chunks)
        self._workers = [_draw_worker(self._ax, worker, n_workers, n_chunks, self._size) for worker in range(n_workers)]
        self._caption = self._ax.text(0, 0, "", ha="center", va="center", linespacing=1.6, animated=True)
        self._moving: list[Rectangle | Text] = []
        canvas_of: Any = FigureCanvasAgg  # which is not typed
        self._canvas = canvas_of(self.figure)
        self._canvas.draw()
        self._empty = self._canvas.copy_from_bbox(self.figure.bbox)  # what never changes is drawn once
        self._held_now, self._still = b"", self._empty

    def times_s(self) -> Iterator[float]:
        """Yield the time of each frame."""
        n_steps = len({(one.phase, one.step) for one in self._sent})
        n_frames = min(MOST_FRAMES, OF_A_STEP * n_steps)
        yield from np.linspace(0, self._end_s, n_frames, endpoint=False).tolist()
        yield from [self._end_s] * OF_THE_END

    def frame(self, time_s: float) -> NDArray[np.uint8]:
        """Return the picture at a time, shape (height, width, 3)."""
        self.show(time_s)
        # Between two arrivals only what moves is drawn anew, and the time.
        self._canvas.restore_region(self._still)
        for artist in (self._caption, *self._moving):
            self._ax.draw_artist(artist)
        return np.array(self._canvas.buffer_rgba())[..., :3].copy()

    def show(self, time_s: float) -> None:
        """Draw what is so at a time."""
        while self._moving:
            self._moving.pop().remove()
        now = self._held.first.copy()
        moving = []
        for one in self._sent:
            if one.applied_s <= time_s:
                one.apply(now)
            elif one.started_s <= time_s:
                moving.append(one)
        if now.tobytes() != self._held_now:
            self._held_now = now.tobytes()
            self._draw_cells(now, time_s)
        for one in moving:
            self._fly(one, (time_s - one.started_s) / (one.applied_s - one.started_s))
        begun = [one for one in self._sent if one.started_s <= time_s]
        latest = max(begun, key=lambda one: one.started_s, default=self._sent[0])
        step = "done" if time_s >= self._end_s else f"{latest.phase}\nstep {latest.step}"
        self._caption.set_text(f"{step}\n{format_seconds(time_s)}")

    def _draw_cells(self, now: IntArray, time_s: float) -> None:
        """Draw what stands: every worker's chunks."""
        self._canvas.restore_region(self._empty)
        for worker, picture in enumerate(self._workers):
            texts = self._values.at(worker, time_s)
            for chunk, (cell, said) in enumerate(zip(picture.cells, picture.said, strict=True)):
                self._fill(cell, said, chunk, int(now[worker, chunk]), texts[chunk] if texts else None)
                self._ax.draw_artist(cell)
                self._ax.draw_artist(said)
        self._still = self._canvas.copy_from_bbox(self.figure.bbox)

    def _fill(self, cell: Rectangle, said: Text, chunk: int, held: int, text: str | None) -> None:
        face = shade(self._colors[chunk], held, self._held.complete)
        is_whole = held == self._held.complete
        cell.set(
            facecolor=face,
            edgecolor=canvas.INK if is_whole else canvas.SOLID,
            linewidth=1.2 if is_whole else 0.5,
        )
        parts = "" if not held else str(held)
        said.set(
            text=parts if text is None else text,
            color=canvas.on(face),
            weight="bold" if is_whole else "normal",
        )
        said.set_visible(self._size[1] >= LEAST_SAID_IN)

    def _fly(self, one: Sent, share: float) -> None:
        """Draw the chunks of a transfer on their way; they start where they stand and end where they go."""
        sender, receiver = self._workers[one.src], self._workers[one.dst]
        texts = self._values.at(one.src, one.started_s)
        for chunk in one.chunks:
            x, y = (1 - share) * sender.corners[chunk] + share * receiver.corners[chunk]
            cell, said = _cell(self._ax, x, y, self._size, zorder=4)
            self._fill(cell, said, chunk, one.carried, texts[chunk] if texts else None)
            cell.set(edgecolor=canvas.ALERT, linewidth=1.3)
            self._moving += [cell, said]


class _Values:
    """What each worker's chunks hold in text, where states are there and short enough to be written."""

    def __init__(self, results: Results, held: Holdings, transfers: list[Sent]) -> None:
        self._since: list[list[tuple[float, list[str]]]] = []
        frame = results.states
        if frame is None:
            return
        elements = [name for name in frame.columns if name not in ("phase", "step", "worker")]
        parts = elements_of(held)
        if max(map(len, parts)) > MOST_VALUES:
            return
        done_s: dict[tuple[object, ...], float] = {}
        for one in transfers:
            key = one.phase, one.step, one.dst
            done_s[key] = max(done_s.get(key, 0.0), one.applied_s)
        self._since = [[] for _ in range(held.first.shape[0])]
        for row in frame.to_dict("records"):
            worker = int(row["worker"])
            since_s = done_s.get((row["phase"], row["step"], worker), 0.0)
            values = [short(row[name]) for name in elements]
            self._since[worker].append((since_s, [" ".join(values[part.start : part.stop]) for part in parts]))

    def __bool__(self) -> bool:
        return bool(self._since)

    def at(self, worker: int, time_s: float) -> list[str] | None:
        """Return what a worker's chunks hold at a time; None where that is not written."""
        if not self._since:
            return None
        return [texts for since_s, texts in self._since[worker] if since_s <= time_s][-1]


def _cell_size(n_workers: int, n_chunks: int, *, has_values: bool) -> tuple[float, float]:
    """Return the width and the height of a chunk's cell: as large as leaves room between neighbours."""
    columns, rows = _block(n_chunks)
    apart_in = 2 * RADIUS_IN * math.sin(math.pi / max(2, n_workers)) * FILLED
    width = min(VALUE_IN if has_values else CELL_IN, apart_in / columns)
    return width, min(CELL_IN, width, apart_in / rows)


def _block(n_chunks: int) -> tuple[int, int]:
    """Return in how many columns and rows a worker's chunks stand."""
    columns = n_chunks if n_chunks <= IN_A_ROW else math.ceil(math.sqrt(n_chunks))
    return columns, -(-n_chunks // columns)


def _empty(results: Results, size: tuple[float, float], n_workers: int, n_chunks: int) -> tuple[Figure, Axes]:
    """Return the figure with its title and legend, and axes in inches whose middle is that of the circle."""
    columns, rows = _block(n_chunks)
    wide = RADIUS_IN + columns * size[0] / 2 + EDGE_IN
    high = RADIUS_IN * (1 if n_workers > 2 else 0.3) + rows * size[1] / 2 + NAME_IN + EDGE_IN  # noqa: PLR2004 -- two stand side by side
    width_in = canvas.asked_width_in() or WIDTH_IN
    figure = Figure(figsize=(width_in, width_in * high / wide), dpi=canvas.asked_dpi() or DPI, layout="constrained")
    ax = figure.subplots()
    ax.set(xlim=(-wide, wide), ylim=(-high, high), aspect="equal")
    ax.axis("off")
    legend = [
        canvas.patch(canvas.paler(canvas.GREY, PALEST), "partial", edgecolor=canvas.SOLID, linewidth=0.5),
        canvas.patch(canvas.paler(canvas.GREY, 0.3), "complete", edgecolor=canvas.INK, linewidth=1.2),
        canvas.patch("white", "moving", edgecolor=canvas.ALERT, linewidth=1.3),
    ]
    canvas.titled(figure, results.name, settings(results.summary), legend)
    figure.draw_without_rendering()
    figure.set_layout_engine(None)
    return figure, ax


def _draw_worker(ax: Axes, worker: int, n_workers: int, n_chunks: int, size: tuple[float, float]) -> WorkerPicture:
    """Draw a worker at its place, the first on top and the others clockwise; two stand side by side."""
    angle = math.pi / 2 * (n_workers > 2) + math.pi * (n_workers <= 2) - 2 * math.pi * worker / n_workers  # noqa: PLR2004
    x, y = RADIUS_IN * math.cos(angle), RADIUS_IN * math.sin(angle)
    columns, rows = _block(n_chunks)
    left, top = x - columns * size[0] / 2, y + rows * size[1] / 2
    ax.text(x, top + 0.03, f"worker {worker}", size=canvas.font_size(), ha="center", va="bottom")
    corners = np.array(
        [(left + chunk % columns * size[0], top - (chunk // columns + 1) * size[1]) for chunk in range(n_chunks)]
    )
    drawn = [_cell(ax, x, y, size, zorder=2) for x, y in corners.tolist()]
    return WorkerPicture(corners, [cell for cell, _ in drawn], [said for _, said in drawn])


def _cell(ax: Axes, x: float, y: float, size: tuple[float, float], zorder: float) -> tuple[Rectangle, Text]:
    """Draw a cell, and above it room for its text."""
    cell = Rectangle((x, y), *size, zorder=zorder, animated=True)
    ax.add_patch(cell)
    middle = x + size[0] / 2, y + size[1] / 2
    look: dict[str, Any] = {"ha": "center", "va": "center_baseline", "zorder": zorder + 0.5, "animated": True}
    return cell, ax.text(*middle, "", size=SAID_PT, **look)
