"""One searching core: a game's kernel, its workspace, and the table that it shares with others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from search import jit
from search import workspace as at
from search.controls import Controls
from search.flags import Algorithm, Flags
from search.limits import MAX_DEPTH, NO_NODE_LIMIT
from search.referee import Referee, print_notice
from search.rules import Game
from search.scores import INFINITY
from search.statistics import Statistics
from search.turns import Turns
from tt_store.layout import BOUND_EXACT, NO_MOVE, WORD_BYTES, unpack
from tt_store.segment import Segment

KERNELS = {
    Algorithm.ALPHA_BETA: "search.kernel",
    Algorithm.EXPECTIMINIMAX: "search.chance",
    Algorithm.MAX_N: "search.multiplayer",
    Algorithm.PARANOID: "search.kernel",
    Algorithm.MCTS: "search.mcts",
}
"""Of each algorithm: what has the entry of `search.kernel`."""


_NO_TASK = -1


class Job(NamedTuple):
    """What a searcher is asked."""

    position: Any
    depth: int
    """Plies to the horizon, 0 or more."""
    alpha: int = -INFINITY
    beta: int = INFINITY
    """The window, from the position's side to move."""
    ply: int = 0
    """Plies from the root of the whole search: mates count from there."""
    side: int = 0
    """0 if the side to move is the one that the whole search is for, else 1."""
    node_limit: int = NO_NODE_LIMIT
    task_id: int = 1
    """Picks the control cell, 1..2^47."""
    epoch: int = 1
    """The job ends when the stop word reaches it."""
    contempt: int = 0
    """What a draw costs the side that the search is for, in the game's units."""
    salt: int = 0
    """Mixed into all keys (signed 64-bit): searches of different salts share nothing in the table."""
    history: tuple[int, ...] = ()
    """Hashes of the positions before this one that can come back, the latest last: `ply` of them are the search's."""
    left_out: tuple[int, ...] = ()
    """First moves that are not searched, fewer than there are; only at ply 0."""
    settings: tuple[int, ...] = ()
    """What else the algorithm must know: a `search.mcts_settings.Slice`; empty for the others."""
    share_depth: int = MAX_DEPTH
    """Nodes deeper than this are shared with other workers that search the same job; see `search.sharing`."""
    own_task_id: int = 0
    """Of a worker that searches another's job: a second cell that it obeys; 0 for none."""


class Outcome(NamedTuple):
    """What came of a job."""

    score: int
    """By the kernel's contract for the window below. Of a job of the root that was not finished but has a line: what
    that is worth, at the least if it reaches beta; else void."""
    alpha: int
    beta: int
    """The window that was searched in the end: control words may have narrowed it."""
    status: int
    """`search.workspace.RUNNING` if finished, else why not."""
    line: tuple[int, ...]
    """Best line from the position, legal throughout; empty if the score is no more than a bound at or below alpha.

    Of a job of the root that was not finished: the best of the first moves searched; empty if none beats alpha.
    """
    statistics: Statistics
    best_move: int
    """First move of the line, else what the table holds for the position; `NO_MOVE` if nothing is known."""
    values: tuple[int, ...] = ()
    """What one score cannot say: empty for the algorithms whose answer is one."""

    @property
    def is_finished(self) -> bool:
        """Whether the score may be used."""
        return self.status == at.RUNNING


def variant_salt(flags: Flags) -> int:
    """Return what is mixed into the keys of a variant (signed 64-bit), 0 for the default.

    Values of other variants must not be met in one table: exact-depth entries, for one, mean something else.
    """
    meaning = flags._replace(stepped=False)
    return 0 if meaning == Flags() else hash(tuple(int(flag) for flag in meaning))


class Searcher:
    """Runs jobs on the calling thread, without the GIL while the kernel runs.

    Parameters
    ----------
    game, flags
        Which kernel.
    segment
        The table; stays the caller's.
    controls
        The control words to obey.
    slot
        The progress word to write.
    notice
        Gets a line if something must be compiled first.
    turns, step_nodes
        Of a simulated worker (`Flags.stepped`): whom it waits for, after how many nodes.
    """

    def __init__(
        self,
        game: Game,
        segment: Segment,
        controls: Controls,
        *,
        flags: Flags = Flags(),
        slot: int = 0,
        notice: Callable[[str], None] = print_notice,
        turns: Turns | None = None,
        step_nodes: int = 0,
    ) -> None:
        self.game, self.flags = game, flags
        self.referee = Referee(game, notice)
        self._kernel = jit.specialise(KERNELS[flags.algorithm], game, flags)
        self.segment, self.controls, self.slot = segment, controls, slot
        words = at.workspace_words(game.max_moves, game.memory_words, game.history_words)
        self._memory = np.zeros(words, np.int64)
        self._address = self._memory.ctypes.data
        self._put(at.PROGRESS_ADDRESS, controls.progress_address(slot))
        self._put(at.STOP_ADDRESS, controls.stop_address)
        self._put(at.SHARING_ADDRESS, controls.sharing_address)
        self._put(at.NEWS_ADDRESS, controls.news_address)
        self._put(at.TABLE_ADDRESS, segment.table_address)
        self._put(at.TABLE_BUCKETS, segment.buckets)
        if turns is not None:
            self._put(at.YIELD_ADDRESS, turns.yield_address)
            self._put(at.RESUME_ADDRESS, turns.resume_address)
            self._put(at.STEP_NODES, NO_NODE_LIMIT)
        self._variant_salt = variant_salt(flags)
        start = self._first_job()
        if turns is not None:
            turns.resume()
        jit.warm_up(self._kernel, lambda: self._call(start), notice)
        if turns is not None:
            # The first call had one turn for all of it.
            turns.await_yield()
            self._put(at.STEP_NODES, step_nodes)

    def _first_job(self) -> Job:
        """Return what loads or compiles the kernel."""
        return Job(self.game.parse(""), depth=1)

    def run(self, job: Job) -> Outcome:
        """Search a job to its end, its limits, or a control word."""
        score = self._call(job)
        window = self._get(at.TASK_ALPHA), self._get(at.TASK_BETA)
        status = self._get(at.STATUS)
        statistics = Statistics(*(int(word) for word in self._memory[: at.STATISTICS_WORDS]))
        least = window[0]
        if status != at.RUNNING:
            score, least = self._get(at.SCORE_SO_FAR), at.UNKNOWN
        # A forged entry of the table may hold any 16 bits.
        score = max(-INFINITY, min(score, INFINITY))
        line = self._line(job) if score > least else ()
        best_move = line[0] if line else self._known_move(job.position, self._get(at.ROOT_KEY), is_exact=False)
        return Outcome(score, *window, status, line, statistics, best_move)

    def forget(self) -> None:
        """Forget killers and history, as before an unrelated search."""
        self._memory[at.KILLERS // WORD_BYTES : at.LENGTHS // WORD_BYTES] = 0
        self._memory[at.history_offset(self.game.max_moves, self.game.memory_words) // WORD_BYTES :] = 0

    def _call(self, job: Job) -> int:
        self._memory[: at.STATISTICS_WORDS] = 0
        self._put(at.STATUS, at.RUNNING)
        self._put(at.SCORE_SO_FAR, at.UNKNOWN)
        self._put(at.NEXT_POLL, 0)
        self._put(at.NODE_LIMIT, job.node_limit)
        self._put(at.TASK_ID, job.task_id)
        self._put(at.EPOCH, job.epoch)
        self._put(at.CELL_ADDRESS, self.controls.cell_address(job.task_id))
        self._put(at.OWN_CELL_ADDRESS, self.controls.cell_address(job.own_task_id))
        self._put(at.OWN_TASK_ID, job.own_task_id or _NO_TASK)
        self._put(at.TASK_ALPHA, job.alpha)
        self._put(at.TASK_BETA, job.beta)
        self._put(at.GENERATION, self.segment.generation)
        self._put(at.CONTEMPT, job.contempt)
        self._put(at.SHARE_DEPTH, job.share_depth)
        mark = self.referee.facts(job.position).side_to_move if self.game.has_extra_turns else job.ply & 1
        self._put(at.SIDE_MARK, mark ^ job.side)
        self._put(at.KEY_SALT, job.salt ^ self._variant_salt)
        self._put(at.LEFT_OUT_MOVES, len(job.left_out))
        left_out = at.left_out_offset(self.game.max_moves) // WORD_BYTES
        self._memory[left_out : left_out + len(job.left_out)] = job.left_out
        if self.game.has("clock"):
            self._put_history(job)
        return int(self._kernel.search_root(job.position, job.depth, job.ply, self._address))

    def _put_history(self, job: Job) -> None:
        """Write the keys of the path before the job's root; where one is not known, none comes back."""
        first = at.PATH_KEYS // WORD_BYTES - at.HISTORY_KEYS
        last = at.PATH_KEYS // WORD_BYTES + job.ply
        known = job.history[-(last - first) :]
        self._memory[first:last] = 0
        self._memory[last - len(known) : last] = known

    def _line(self, job: Job) -> tuple[int, ...]:
        """Return the kernel's line, cut where it is illegal, continued from exact entries of the table."""
        length = self._get(at.LENGTHS + job.ply * WORD_BYTES)
        begin = (at.LINES + job.ply * at.LINE_BYTES) // WORD_BYTES
        raw = (int(move) for move in self._memory[begin : begin + length])
        line, position = self.referee.legal_prefix(job.position, raw)
        key = self._get(at.ROOT_KEY)
        while len(line) < job.depth:
            if line:
                key = self.referee.facts(position).entry_key ^ job.salt ^ self._variant_salt
            move = self._known_move(position, key, is_exact=True)
            if move == NO_MOVE or move not in self.referee.legal_moves(position):
                break
            line.append(move)
            position = self.referee.play(position, move)
        return () if line and line[0] in job.left_out else tuple(line)

    def _known_move(self, position: Any, key: int, *, is_exact: bool) -> int:
        """Return the table's move for a position of a salted key, of any entry or only of an exact one.

        It may be illegal.
        """
        if not self.flags.table:
            return NO_MOVE
        segment = self.segment
        entry = unpack(self.referee.rulebook.probe_table(segment.table_address, segment.buckets, key))
        if is_exact and entry.bound != BOUND_EXACT:
            return NO_MOVE
        return self.referee.turned_move(position, entry.move)

    def _put(self, offset: int, value: int) -> None:
        self._memory[offset // WORD_BYTES] = value

    def _get(self, offset: int) -> int:
        return int(self._memory[offset // WORD_BYTES])
