"""What a search tells its user: one frozen record, as text and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cluster.findings import findings_of
from search.flags import Algorithm
from search.results import Iteration, SearchResult
from search.rules import Game
from search.scores import mate_distance
from tt_store.layout import BOUND_EXACT, BOUND_LOWER, BOUND_NONE, BOUND_UPPER

BOUND_NAMES = {BOUND_NONE: None, BOUND_EXACT: "exact", BOUND_LOWER: "lower", BOUND_UPPER: "upper"}
AT_BOUND = {BOUND_NONE: "", BOUND_EXACT: "", BOUND_LOWER: "at least ", BOUND_UPPER: "at most "}


@dataclass(frozen=True)
class Overheads:
    """Where the workers' time went; shares 0..1 of workers times seconds."""

    idle: float
    """Workers without a task, and followers whose leader has none."""
    communication: float
    """Workers with a task that they do not search: it, or its result, is on its way or waits."""
    tasks: int
    """That the splitter has handed out; who follows a leader gets none of them."""
    aborted_tasks: int
    """Tasks that brought no score: moot, stopped, or out of their budget."""
    wasted_nodes: int
    """Nodes of those; the table remembers a part of their work."""
    splitter_s: float
    """Real seconds that the splitter itself took."""
    exchanged_entries: int
    """Entries of tables that went to other machines."""
    busy_s: tuple[float, ...]
    """Seconds that each worker searched."""


@dataclass(frozen=True)
class RankedLine:
    """One of the best lines of an iteration, in its users' notation; each begins with another move."""

    rank: int
    """From 1; scores never rise down the list."""
    move: str
    """The first of the line."""
    score: int
    score_text: str
    depth: int
    """The same for all lines of a list."""
    principal_variation: tuple[str, ...]
    is_solved: bool
    """Whether the score stays, however deep one looks."""
    bound: str = "exact"
    values: tuple[int, ...] = ()
    """What it is worth to each of several players; empty where the search does not tell."""


@dataclass(frozen=True)
class SearchReport:
    """The result of one search."""

    game: Game
    request_text: str
    """The position as the user gave it."""
    moves: tuple[str, ...]
    result: SearchResult
    multipv: int
    """How many lines were asked for."""
    line: tuple[str, ...]
    """The best line in its users' notation."""
    iteration_lines: tuple[tuple[RankedLine, ...], ...]
    """The lines of each iteration."""
    workers: int
    machines: int
    table_mb: float
    strategy: str
    algorithm: Algorithm
    overheads: Overheads

    @property
    def best_move(self) -> str | None:
        """The best move in its users' notation; None if the game is over, or chance moves."""
        move = self.result.best_move
        return None if move is None else self.game.move_text(self.result.position, move)

    @property
    def values(self) -> tuple[int, ...]:
        """What each of several players gets; empty where the search does not tell."""
        return self.result.values

    @property
    def lines(self) -> tuple[RankedLine, ...]:
        """The best lines of the last finished iteration; fewer than were asked for if there are no more first moves."""
        return self.iteration_lines[-1] if self.iteration_lines else ()

    @property
    def line_texts(self) -> tuple[tuple[str, ...], ...]:
        """The principal variation of each iteration, in its users' notation."""
        return tuple(lines[0].principal_variation for lines in self.iteration_lines)

    @property
    def principal_variation(self) -> tuple[str, ...]:
        """The best line; empty if no iteration was finished."""
        return self.line if self.iteration_lines else ()

    @property
    def nodes_per_s(self) -> float:
        """Nodes per second, all workers together."""
        return self.result.statistics.nodes / self.result.time_s if self.result.time_s > 0 else 0.0

    def score_text(self, score: int | None = None) -> str:
        """Return a score, by default the final one, in its users' convention."""
        result = self.result
        if score is not None:
            return self.game.score_text(result.position, score, result.is_solved)
        text = self.game.value_text(result.position, result.score, result.values, result.is_solved)
        return f"{AT_BOUND[result.bound]}{text}"

    def as_json(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints; see the design for its fields."""
        result, statistics = self.result, self.result.statistics
        return {
            "game": self.game.label,
            "position": self.request_text or self.game.start_text,
            "moves": list(self.moves),
            "best_move": self.best_move,
            "score": result.score,
            "score_text": self.score_text(),
            "bound": BOUND_NAMES[result.bound],
            "solved": result.is_solved,
            "mate_in": mate_in(result.score) if result.bound == BOUND_EXACT else None,
            "depth": result.depth,
            "seldepth": statistics.selective_depth,
            "pv": list(self.principal_variation),
            "multipv": self.multipv,
            "lines": [_line_json(line) for line in self.lines],
            "nodes": statistics.nodes,
            "time_s": round(result.time_s, 6),
            "nps": round(self.nodes_per_s),
            "workers": self.workers,
            "machines": self.machines,
            "table_mb": self.table_mb,
            "strategy": self.strategy,
            "algorithm": self.algorithm.label,
            **findings_of(self.game, result).as_json(),
            "first_move_fail_high_rate": statistics.first_move_fail_high_rate,
            "iterations": [
                _iteration_json(item, lines)
                for item, lines in zip(result.iterations, self.iteration_lines, strict=True)
            ],
            "overheads": {
                # The search overhead needs a sequential run to compare with: `rootsplit scale` measures it.
                "search": None,
                "idle": self.overheads.idle,
                "communication": self.overheads.communication,
                "tasks": self.overheads.tasks,
                "aborted_tasks": self.overheads.aborted_tasks,
                "wasted_nodes": self.overheads.wasted_nodes,
                "splitter_s": self.overheads.splitter_s,
                "exchanged_entries": self.overheads.exchanged_entries,
                "busy_s": list(self.overheads.busy_s),
            },
        }


def mate_in(score: int) -> int | None:
    """Return the winner's moves to the end of the game, negative if the side to move loses; None if undecided."""
    distance = mate_distance(score)
    if distance is None:
        return None
    moves = (abs(distance) + 1) // 2
    return moves if score > 0 else -moves


def _line_json(line: RankedLine) -> dict[str, Any]:
    return {
        "rank": line.rank,
        "move": line.move,
        "score": line.score,
        "score_text": line.score_text,
        "values": list(line.values) or None,
        "bound": line.bound,
        "solved": line.is_solved,
        "mate_in": mate_in(line.score),
        "depth": line.depth,
        "pv": list(line.principal_variation),
    }


def _iteration_json(iteration: Iteration, lines: tuple[RankedLine, ...]) -> dict[str, Any]:
    statistics = iteration.statistics
    return {
        "depth": iteration.depth,
        "score": iteration.score,
        "bound": "exact",
        "pv": list(lines[0].principal_variation),
        "lines": [_line_json(line) for line in lines],
        "nodes": statistics.nodes,
        "seldepth": statistics.selective_depth,
        "time_s": round(iteration.time_s, 6),
        "researches": iteration.researches,
        "first_move_fail_high_rate": statistics.first_move_fail_high_rate,
    }
