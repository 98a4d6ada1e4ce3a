"""Points on the workers of a Dask cluster that is already there, through joblib's Dask back end."""

from __future__ import annotations

import asyncio
import importlib.metadata
import logging
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import closing, contextmanager
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, NoReturn

from joblib import Parallel, delayed
from joblib._dask import DaskDistributedBackend

from ringnet._version import __version__
from ringnet.errors import Fault, InputError, StudyError
from ringnet.study.outcome import Done, Task, carry_out, code_digest, keep, quietly

#: How long an address may take to answer.
ANSWER_S = 5.0
#: How long a cluster may be without any worker, how long its scheduler may be silent, and how often it is asked.
PATIENCE_S = 30.0
SILENCE_S = 60.0
WATCH_S = 1.0

GIVEN_UP = "the cluster gave it up"
EXAMPLE = "tcp://10.0.0.1:8786"


class LostError(Exception):
    """The cluster has had no worker for too long; never leaves this package."""


def on_cluster(tasks: list[Task], address: str) -> Generator[Done]:
    """Yield every task's outcome as it is finished on the cluster at ``address``.

    A worker that is lost loses no point: the cluster gives its points to the others. Points whose workers are
    lost again and again are tried once more, each alone, so that the one that does the harm shows itself as
    an error. The workers may not share a disk with this machine, so points are kept from here.

    Raises
    ------
    InputError
        Nothing answers at the address, or it is no cluster that could run the points.
    StudyError
        The cluster itself, or the last of its workers, was lost.
    """
    paths = {task.key: task.path for task in tasks}
    with (
        _silent(),
        _connected(address) as client,
        _losses_told(address),
        closing(_with_second_try(tasks, client)) as done,
    ):
        for key, outcome in done:
            yield key, keep(outcome, paths[key])


def _with_second_try(tasks: list[Task], client: Any) -> Generator[Done]:
    by_key, given_up = {task.key: task for task in tasks}, []
    with closing(_side_by_side(tasks, client)) as done:
        for key, outcome in done:
            if outcome.error.startswith(GIVEN_UP):
                given_up.append(by_key[key])
            else:
                yield key, outcome
    for task in given_up:
        yield from _side_by_side([task], client)


def _side_by_side(tasks: list[Task], client: Any) -> Generator[Done]:
    backend = ClusterBackend(client=client)
    # One point a task: the cluster then loses, repeats and gives up points, not handfuls of them.
    parallel = Parallel(-1, backend, return_as="generator_unordered", batch_size=1, pre_dispatch="8*n_jobs")
    with quietly(), closing(parallel(delayed(carry_out)(replace(task, path=None)) for task in tasks)) as done:
        yield from done


@contextmanager
def _losses_told(address: str) -> Iterator[None]:
    try:
        yield
    except (CancelledError, LostError) as error:
        raise StudyError(f"the cluster at {address} was lost: {error}") from error


class ClusterBackend(DaskDistributedBackend):  # type: ignore[misc]
    """joblib's Dask back end, which would wait for ever for a task that the cluster has given up."""

    def start_call(self) -> None:
        """Begin to watch whether there still are workers."""
        super().start_call()
        self._waiting: dict[Future[Any], Callable[[Any], None]] = {}
        self.client.loop.add_callback(self._watch)

    def effective_n_jobs(self, n_jobs: int) -> int:
        """Return the cores of the cluster; never 1, on which joblib would run everything right here."""
        return max(2, int(super().effective_n_jobs(n_jobs)))

    def submit(self, func: Any, callback: Callable[[Any], None]) -> Future[Any]:
        """Hand a batch of one task to the cluster; ``callback`` hears of its end, also of a bad one."""
        future: Future[Any] = super().submit(func, callback)
        self._waiting[future] = callback
        future.add_done_callback(lambda done: self._ended(done, func, callback))
        return future

    def retrieve_result_callback(self, out: Any) -> Any:
        """Return what the tasks of a batch came to, or raise what ended the whole call."""
        if isinstance(out, BaseException):
            raise out
        return out if isinstance(out, list) else super().retrieve_result_callback(out)

    def _ended(self, done: Future[Any], func: Any, callback: Callable[[Any], None]) -> None:
        del self._waiting[done]
        error = done.exception()
        if error is not None:
            callback([task.lost(f"{GIVEN_UP}: {error}") for _, (task,), _ in func.items])

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        seen = loop.time()
        while self._continue:
            await asyncio.sleep(WATCH_S)
            lost = f"no worker for {PATIENCE_S:g} seconds"
            try:
                if await asyncio.wait_for(self.client.scheduler.ncores(), SILENCE_S):
                    seen = loop.time()
            except TimeoutError:
                lost = f"its scheduler has not answered for {SILENCE_S:g} seconds"
            if loop.time() - seen > PATIENCE_S and self._waiting:
                next(iter(self._waiting.values()))(LostError(lost))
                return


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    if find_spec("distributed") is None:
        _refuse("the extra for clusters is not installed", right='pip install "ringnet[cluster]"')
    _check_answers(address)
    from distributed import Client  # noqa: PLC0415 -- an extra, and a second of imports

    with Client(address, timeout=ANSWER_S, set_as_default=False) as client:  # type: ignore[no-untyped-call]
        _check_workers(client, address)
        yield client


def _check_answers(address: str) -> None:
    """Refuse what does not answer as a scheduler; the Client itself can wait for ever on an open port."""
    try:
        identity = asyncio.run(asyncio.wait_for(_identity(address), ANSWER_S))
    except TimeoutError:
        _refuse(f"nothing answers within {ANSWER_S:g} seconds", address, EXAMPLE)
    except Exception as error:  # what answers may be anything, and break its reading in any way
        _refuse(f"no Dask scheduler answers: {error}", address, EXAMPLE)
    if identity.get("type") != "Scheduler":
        _refuse(
            f"this is the address of a {str(identity.get('type')).lower()}, not of a scheduler",
            address,
            EXAMPLE,
        )
    if not identity.get("workers"):
        _refuse("the cluster has no workers", address, f"start some: dask worker {address}")


async def _identity(address: str) -> dict[str, Any]:
    from distributed.core import rpc  # noqa: PLC0415 -- as above

    async with rpc(address) as scheduler:  # type: ignore[no-untyped-call]
        return dict(await scheduler.identity())


def _check_workers(client: Any, address: str) -> None:
    """Refuse workers with no ringnet, or another one: the same points would come out otherwise."""
    found = client.run(importlib.metadata.version, "ringnet", on_error="return")
    for worker, version in found.items():
        if version != __version__:
            has = f"ringnet {version}" if isinstance(version, str) else "no ringnet"
            _refuse(f"its worker {worker} has {has}", address, f"ringnet {__version__}, as here")
    for worker, code in client.run(code_digest).items():
        if code != code_digest():
            what = f"its worker {worker} has a ringnet {__version__}, or a NumPy, of other code"
            _refuse(what, address, "the same installed there as here")


def _refuse(message: str, address: str = "", right: str = "") -> NoReturn:
    raise InputError(Fault(message, "--cluster", value=address, right=right)) from None


@contextmanager
def _silent() -> Iterator[None]:
    """Keep the log of the client, which tells of every lost connection at length, off the terminal."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
