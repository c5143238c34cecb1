"""The tuner of ProbCut: searches positions of games to each depth, and fits how shallow scores tell deep ones.

::

    python -m search.games.othello.prob_cut_fitting search scores.txt --games 300 --depth 10 --seed 1
    python -m search.games.othello.prob_cut_fitting fit scores.txt more.txt --write

`search` appends to its file a line for each position: the board, and its scores at depths 1, 2, and so on, as far as
no square is in sight that `solve_leaf` takes care of::

    ---------------------------OX------XO--------------------------- X;-37,-10,-5,-1

`fit` draws the line of least squares through the pairs of a shallow and a deep score, for each stage of the game by
itself, and prints how far off it is, in discs, on positions that it did not fit; with ``--write`` it puts the table in
the place of `search.games.othello.prob_cuts`. Equal seeds and data give equal tables.

The table that is there comes from these searches: 20 games of seed 3 with 5 to 11 discs, 136 of seed 1 with 12 or more,
both to depth 10, and 30 of seed 2 with 12 or more to depth 12.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from search.controls import CONTROL_WORDS, Controls
from search.flags import Flags
from search.game_files import load_game
from search.games.othello import prob_cuts as table
from search.games.othello.board import DISC, SQUARES
from search.games.othello.endgame import SOLVED_SQUARES
from search.games.othello.fitting import HELD_BACK
from search.games.othello.notation import parse, text
from search.games.othello.prob_cut import STAGE_DISCS, STAGES
from search.games.othello.selfplay import FIRST_SALT, Plan, play_games
from search.rules import SLOPE_SHIFT, ProbCut, RulesError
from search.searcher import Job, Searcher
from tt_store.segment import Segment

PAIRS = ((3, 1), (4, 2), (5, 1), (6, 2), (7, 3), (8, 4), (9, 3), (10, 4), (11, 5), (12, 6))
"""Which deep search is told by which shallow one: of equal parity, for who moves last gains."""
FEWEST = 30
"""A stage with fewer positions has no rule."""
ALL_DISCS = range(5, SQUARES)
A_GAME = 5
"""Positions that are taken of a game."""


class Scores(NamedTuple):
    """A position and what searches of it say."""

    position: Any
    scores: tuple[int, ...]
    """At depths 1, 2, and so on, for the side to move, in units of scores."""

    @property
    def stage(self) -> int:
        """The stage of the game."""
        return _discs(self.position) // STAGE_DISCS


class Line(NamedTuple):
    """How a shallow score tells a deep one: their line, and how far off it is."""

    slope: float
    offset: float
    deviation: float
    """The root of the mean squared error; like the offset in units of scores."""


def search_positions(
    games: int, depth: int, seed: int, plan: Plan = Plan(), discs: range = ALL_DISCS
) -> Iterator[Scores]:
    """Yield the scores of some positions of games; equal seeds and plans give equal ones.

    Parameters
    ----------
    games, seed, plan
        As for `search.games.othello.selfplay.play_games`.
    depth
        The greatest.
    discs
        How many are on the boards.
    """
    game, rng = load_game("othello"), random.Random(f"prob-cut-{seed}")
    words = np.zeros(CONTROL_WORDS, np.int64)
    with Segment.private(plan.table_mb) as segment:
        searcher = Searcher(game, segment, Controls(words.ctypes.data), flags=Flags(prob_cut=False))
        for number, samples in enumerate(play_games(games, seed, plan)):
            fitting = [sample.position for sample in samples if _most_depth(sample.position) >= PAIRS[0][0]]
            fitting = [position for position in fitting if _discs(position) in discs]
            for index, position in enumerate(rng.sample(fitting, min(A_GAME, len(fitting)))):
                salt = FIRST_SALT * (number + 1) + index
                depths = range(1, min(depth, _most_depth(position)) + 1)
                yield Scores(position, tuple(searcher.run(Job(position, each, salt=salt)).score for each in depths))


def _discs(position: Any) -> int:
    return (int(position.own) | int(position.other)).bit_count()


def _most_depth(position: Any) -> int:
    """Return the greatest depth at which the search meets no position that is solved instead of estimated."""
    return SQUARES - _discs(position) - SOLVED_SQUARES - 1


def scores_line(scores: Scores) -> str:
    """Return a position's scores as a line of a file."""
    return f"{text(scores.position)};{','.join(map(str, scores.scores))}"


def read_scores(line: str) -> Scores:
    """Return the scores of a line.

    Raises
    ------
    RulesError
        If the line tells none.
    """
    board, _, rest = line.partition(";")
    try:
        return Scores(parse(board), tuple(int(word) for word in rest.split(",")))
    except ValueError:
        raise RulesError(f"the line {line!r} must end with scores, such as ;-3,12") from None


def pairs_of(data: Sequence[Scores], stage: int, deep: int, shallow: int) -> np.ndarray:
    """Return the pairs of a shallow and a deep score of a stage, `[N, 2]`."""
    known = [each.scores for each in data if each.stage == stage and len(each.scores) >= deep]
    return np.array([(scores[shallow - 1], scores[deep - 1]) for scores in known], np.float64).reshape(-1, 2)


def line_through(pairs: np.ndarray) -> Line:
    """Return the line of least squares through pairs of a shallow and a deep score."""
    columns = np.column_stack((pairs[:, 0], np.ones(len(pairs))))
    slope, offset = np.linalg.lstsq(columns, pairs[:, 1], rcond=None)[0]
    return Line(slope, offset, deviation(pairs, slope, offset))


def deviation(pairs: np.ndarray, slope: float, offset: float) -> float:
    """Return how far off a line is, the root of the mean squared error."""
    return float(np.sqrt(np.mean((slope * pairs[:, 0] + offset - pairs[:, 1]) ** 2)))


def fit(data: Sequence[Scores]) -> list[ProbCut]:
    """Return the rules that the data tell, in the units of the table."""
    rules = []
    for stage in range(STAGES):
        for deep, shallow in PAIRS:
            pairs = pairs_of(data, stage, deep, shallow)
            if len(pairs) >= FEWEST:
                line = line_through(pairs)
                slope, offset, off = round(line.slope * (1 << SLOPE_SHIFT)), round(line.offset), round(line.deviation)
                rules.append(ProbCut(stage, deep, shallow, slope, offset, off))
    return rules


def module_text(rules: Sequence[ProbCut], positions: int) -> str:
    """Return the source of the module `search.games.othello.prob_cuts`."""
    rows = (f"    ProbCut({', '.join(map(str, rule))})," for rule in rules)
    return "\n".join(
        [
            '"""How far a shallow search tells a deep one, at each stage of the game.',
            "",
            f"Written by `search.games.othello.prob_cut_fitting` from {positions} positions, not by hand.",
            '"""',
            "",
            "from __future__ import annotations",
            "",
            "from search.rules import ProbCut",
            "",
            "# fmt: off",
            "PROB_CUTS: tuple[ProbCut, ...] = (",
            *rows,
            ")",
            "# fmt: on",
            "",
        ]
    )


def _search(arguments: argparse.Namespace) -> None:
    discs = range(arguments.discs[0], arguments.discs[1] + 1)
    found = search_positions(arguments.games, arguments.depth, arguments.seed, discs=discs)
    with arguments.file.open("a") as file:
        for count, scores in enumerate(found, 1):
            file.write(scores_line(scores) + "\n")
            if count % 100 == 0 or count == A_GAME * arguments.games:
                file.flush()
                print(f"{count} positions", flush=True)


def _fit(arguments: argparse.Namespace) -> None:
    data = [read_scores(line) for path in arguments.files for line in path.read_text().splitlines()]
    kept = round(len(data) * (1 - HELD_BACK))
    rules = fit(data[:kept])
    print(f"{len(data)} positions; slope, offset and deviation in discs, and the error on those held back:")
    for rule in rules:
        held_back = pairs_of(data[kept:], rule.stage, rule.deep, rule.shallow)
        slope = rule.slope / (1 << SLOPE_SHIFT)
        off = deviation(held_back, slope, rule.offset) / DISC if len(held_back) else np.nan
        print(
            f"from {rule.stage * STAGE_DISCS:2} discs, {rule.shallow:2} tells {rule.deep:2}: {slope:5.2f}"
            f" {rule.offset / DISC:+5.1f} {rule.deviation / DISC:5.1f} {off:5.1f}"
        )
    module = module_text(rules, kept)
    if arguments.write and table.__file__ is not None:
        Path(table.__file__).write_text(module)
    else:
        print(module)


def main(words: Sequence[str]) -> None:
    """Run the command that some words ask for."""
    summary = __doc__.split("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m search.games.othello.prob_cut_fitting", description=summary)
    commands = parser.add_subparsers(required=True)
    searching = commands.add_parser("search", help="search positions of games and append their scores to a file")
    searching.add_argument("file", type=Path)
    searching.add_argument("--games", type=int, default=300)
    searching.add_argument("--depth", type=int, default=10, help="the greatest")
    searching.add_argument("--discs", type=int, nargs=2, default=(ALL_DISCS[0], ALL_DISCS[-1]), help="least and most")
    searching.add_argument("--seed", type=int, default=1)
    searching.set_defaults(run=_search)
    fitting = commands.add_parser("fit", help="fit the table to files of scores")
    fitting.add_argument("files", type=Path, nargs="+")
    fitting.add_argument("--write", action="store_true", help="put the table in its place")
    fitting.set_defaults(run=_fit)
    arguments = parser.parse_args(words)
    arguments.run(arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
