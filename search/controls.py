"""The control words of a machine: how running tasks learn that they are moot, narrowed or to stop.

They lie in the table's segment, or in memory of this process, and are read by kernels with atomic loads::

    word 0          stop: tasks whose epoch is this or older end at once
    words 1..7      spare
    words 8..4103   cells: task id << 16 | bound (see `search.kernel.poll`); task id modulo 4096 picks the cell
    words 4104..    progress: nodes of each worker's running task
    words 5120..    sharing: keys of the positions that are being searched (see `search.sharing`)
    words 9216..    news: deep entries of the table, for other machines (see `tt_store.news`)
    then            boards: the task of each team, and the answer of whoever finished it (see `search.boards`)
"""

from __future__ import annotations

import ctypes

from search.boards import BOARD_WORDS, BOARDS, Board
from tt_store.layout import WORD_BYTES
from tt_store.news import NEWS_WORDS

CELLS = 4096
MAX_WORKERS = 1016
_FIRST_CELL = 8
_FIRST_PROGRESS = _FIRST_CELL + CELLS
_FIRST_SHARED = _FIRST_PROGRESS + MAX_WORKERS
SHARED_WORDS = 4096
"""A power of two: a machine's workers search no more than a few positions each at a time."""
_FIRST_NEWS = _FIRST_SHARED + SHARED_WORDS
_FIRST_BOARD = _FIRST_NEWS + NEWS_WORDS
CONTROL_WORDS = _FIRST_BOARD + 2 * BOARDS * BOARD_WORDS
"""Words that a segment must have for them."""

BOUND_BITS = 16
ABORT_BOUND = -(1 << 15)
"""The bound that says: this task is moot."""


class Controls:
    """Writes and reads the control words at an address.

    Python's `ctypes` stores an aligned 64-bit word by one instruction on all machines that Numba supports, so that a
    kernel never reads half of it.

    Parameters
    ----------
    address
        Of `CONTROL_WORDS` zeroed words that outlive this object's use.
    """

    def __init__(self, address: int) -> None:
        self._address = address

    @property
    def stop_address(self) -> int:
        """Address of the stop word."""
        return self._address

    def cell_address(self, task_id: int) -> int:
        """Return the address of a task's cell."""
        return self._address + (_FIRST_CELL + task_id % CELLS) * WORD_BYTES

    def progress_address(self, slot: int) -> int:
        """Return the address of a worker's progress word; slots are 0..`MAX_WORKERS` - 1."""
        return self._address + (_FIRST_PROGRESS + slot) * WORD_BYTES

    @property
    def sharing_address(self) -> int:
        """Address of the `SHARED_WORDS` words of `search.sharing`."""
        return self._address + _FIRST_SHARED * WORD_BYTES

    @property
    def news_address(self) -> int:
        """Address of the `NEWS_WORDS` words of `tt_store.news`."""
        return self._address + _FIRST_NEWS * WORD_BYTES

    def task_board(self, board: int) -> Board:
        """Return the board, 1..`BOARDS`, on which a team's leader tells its task."""
        return self._board(board - 1)

    def answer_board(self, board: int) -> Board:
        """Return the board, 1..`BOARDS`, on which one of a team's followers tells what came of the task."""
        return self._board(BOARDS + board - 1)

    def stop(self, epoch: int) -> None:
        """End all tasks of this epoch and of older ones; never goes back."""
        if epoch > self._word(self.stop_address).value:
            # Race: kernels read this word while we write it.
            self._word(self.stop_address).value = epoch

    def set_bound(self, task_id: int, bound: int) -> None:
        """Tell a task that its beta, seen from its own side to move, fell to a bound."""
        # Race: as above. A cell shared by two tasks 4096 apart loses the older word: a lost abort costs time only.
        self._word(self.cell_address(task_id)).value = task_id << BOUND_BITS | bound & 0xFFFF

    def abort(self, task_id: int) -> None:
        """Tell a task that it is moot."""
        self.set_bound(task_id, ABORT_BOUND)

    def is_stopped(self, epoch: int) -> bool:
        """Tell whether the tasks of an epoch are to end."""
        return self._word(self.stop_address).value >= epoch

    def is_aborted(self, task_id: int) -> bool:
        """Tell whether a task is moot."""
        return self._word(self.cell_address(task_id)).value == task_id << BOUND_BITS | ABORT_BOUND & 0xFFFF

    def show_progress(self, slot: int, count: int) -> None:
        """Show that a worker without a kernel that runs is alive, by a count that changes."""
        self._word(self.progress_address(slot)).value = count

    def progress(self, slot: int) -> int:
        """Return the nodes that a worker's running task had at its last poll."""
        return self._word(self.progress_address(slot)).value

    def _board(self, index: int) -> Board:
        return Board(self._address + (_FIRST_BOARD + index * BOARD_WORDS) * WORD_BYTES)

    @staticmethod
    def _word(address: int) -> ctypes.c_int64:
        return ctypes.c_int64.from_address(address)
