"""One core of a Monte Carlo tree search: makes slices of playouts on the tree in its machine's table memory."""

from __future__ import annotations

from search import mcts_settings as words
from search import workspace as at
from search.mcts_settings import SettingsError, Slice, slice_of
from search.mcts_standing import RootMove, Standing
from search.mcts_tree import UNKNOWN, NodeView, TreeView, nodes_in
from search.scores import MAX_PLY
from search.searcher import Job, Outcome, Searcher
from search.statistics import Statistics
from tt_store.layout import BUCKET_BYTES, BYTES_PER_MB, NO_MOVE


class MonteCarloSearcher(Searcher):
    """Makes the playouts of jobs on the calling thread; made and used like `Searcher`.

    A job's node limit is its number of playouts, its `settings` are a `search.mcts_settings.Slice`; depth, window,
    contempt and salt mean nothing. Jobs of one tree number share a tree, and must have the same position.
    """

    def run(self, job: Job) -> Outcome:
        """Make a job's playouts, until a control word or the root's proof ends it.

        Returns
        -------
        Outcome
            Its score is the best move's mean result in thousandths, its line walks down by the best moves, and its
            values are the root's `Standing.words`: of all playouts on this tree so far, whoever has made them.

        Raises
        ------
        SettingsError
            If the memory is too small for the root and its moves.
        """
        self._call(job)
        slice_ = slice_of(job.settings)
        view = TreeView(*self._room(slice_), slice_.tree_number)
        status, statistics = self._get(at.STATUS), Statistics(*map(int, self._memory[: at.STATISTICS_WORDS]))
        root = view.root
        children = [] if root is None else view.children(root.node)
        if not children:
            moves = self.game.max_moves + 1
            if status != at.STOPPED and view.capacity < moves:
                size_mb = (view.capacity and moves) * 24 / BYTES_PER_MB
                raise SettingsError(
                    f"the tree needs memory for {moves} nodes, {size_mb:.1f} MB: ask for more with --table"
                )
            return Outcome(0, job.alpha, job.beta, status, (), statistics, NO_MOVE)
        standing = Standing(tuple(RootMove(child.move, child.visits, child.value, child.verdict) for child in children))
        best = standing.ranked[0]
        # A slice that has made its playouts is done.
        status = at.RUNNING if status == at.OUT_OF_NODES else status
        line = self._best_line(view, children)
        return Outcome(best.score, job.alpha, job.beta, status, line, statistics, best.move, standing.words())

    def forget(self) -> None:
        """Forget nothing: each tree has a number of its own, and there is no history."""

    def _first_job(self) -> Job:
        # No playout at all, so that a tree that others grow stays: the kernel is compiled all the same.
        return Job(self.game.parse(""), depth=1, node_limit=0, settings=tuple(words.MonteCarloSettings().slice(1, 0)))

    def _call(self, job: Job) -> int:
        slice_ = slice_of(job.settings)
        address, size_bytes = self._room(slice_)
        for offset, word in (
            (words.TREE_ADDRESS, address),
            (words.TREE_CAPACITY, nodes_in(size_bytes)),
            (words.TREE_NUMBER, slice_.tree_number),
            (words.ORIGIN, slice_.origin),
            (words.FIRST_STREAM, slice_.first_stream),
            (words.EXPLORATION, slice_.exploration),
            (words.FIRST_PLAY_URGENCY, slice_.first_play_urgency),
            (words.EXPAND_AFTER, slice_.expand_after),
            (words.LONGEST_PLAYOUT, slice_.longest_playout),
        ):
            self._put(offset, word)
        return super()._call(job)

    def _room(self, slice_: Slice) -> tuple[int, int]:
        """Return the address and the bytes of the memory in which a slice's tree lies."""
        size_bytes = self.segment.size_bytes // slice_.parts // BUCKET_BYTES * BUCKET_BYTES
        return self.segment.table_address + slice_.part * size_bytes, size_bytes

    def _best_line(self, view: TreeView, children: list[NodeView]) -> tuple[int, ...]:
        """Return the moves from the root on that rank best, as far as they were visited."""
        line: list[int] = []
        while children and len(line) < MAX_PLY:
            best = max(children, key=lambda child: RootMove(child.move, child.visits, child.value, child.verdict).rank)
            if line and best.visits == 0:
                break
            line.append(best.move)
            children = [] if best.verdict != UNKNOWN and best.visits == 0 else view.children(best.node)
        return tuple(line)
