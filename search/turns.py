"""Two semaphores that let one of many threads run at a time: how simulated workers take turns.

A kernel of the stepped variant gives its turn back at each poll and waits for the next, from compiled code; the one
who simulates takes the worker's turn and waits until it is given back.
"""

from __future__ import annotations

import ctypes

from tt_store.errors import RunFailedError

_SEMAPHORE_BYTES = 64
"""More than any system's ``sem_t``."""

_libc = ctypes.CDLL(None, use_errno=True)


class Turns:
    """A pair of semaphores: one for the worker to wait on, one for the simulator.

    Raises
    ------
    RunFailedError
        If this system has no unnamed POSIX semaphores.
    """

    def __init__(self) -> None:
        self._memory = ctypes.create_string_buffer(2 * _SEMAPHORE_BYTES)
        self._address = ctypes.addressof(self._memory)
        for address in (self.resume_address, self.yield_address):
            if _libc.sem_init(ctypes.c_void_p(address), 0, 0) != 0:
                raise RunFailedError("a simulation needs POSIX semaphores, which this system does not have")

    @property
    def resume_address(self) -> int:
        """Address of the semaphore that the worker waits on."""
        return self._address

    @property
    def yield_address(self) -> int:
        """Address of the semaphore that the simulator waits on."""
        return self._address + _SEMAPHORE_BYTES

    def take(self) -> None:
        """Let the worker run, and wait until it gives its turn back: the simulator's side."""
        self.resume()
        self.await_yield()

    def await_yield(self) -> None:
        """Wait until the worker gives its turn back."""
        _wait(self.yield_address)

    def resume(self) -> None:
        """Let the worker run without waiting for it."""
        _libc.sem_post(ctypes.c_void_p(self.resume_address))

    def wait(self) -> None:
        """Wait for a turn: the worker's side, outside the kernel."""
        _wait(self.resume_address)

    def give_back(self) -> None:
        """End a turn: the worker's side, outside the kernel."""
        _libc.sem_post(ctypes.c_void_p(self.yield_address))

    def close(self) -> None:
        """Destroy the semaphores; nobody may wait on them any more."""
        for address in (self.resume_address, self.yield_address):
            _libc.sem_destroy(ctypes.c_void_p(address))


def _wait(address: int) -> None:
    """Wait on a semaphore without the GIL, again where a signal has ended the wait."""
    while _libc.sem_wait(ctypes.c_void_p(address)) != 0:
        pass
