"""What an engine tells while it searches: the ``info`` lines."""

from __future__ import annotations

from cluster.report import mate_in
from tt_store.layout import BOUND_EXACT, BOUND_LOWER, BOUND_UPPER

_BOUND_WORDS = {BOUND_EXACT: "", BOUND_LOWER: " lowerbound", BOUND_UPPER: " upperbound"}


def score_words(score: int) -> str:
    """Return a score as UCI writes it: moves to mate, or the game's units (hundredths of a pawn in chess)."""
    mate = mate_in(score)
    return f"cp {score}" if mate is None else f"mate {mate}"


def info_line(
    *,
    depth: int,
    selective_depth: int,
    rank: int,
    score: int,
    nodes: int,
    elapsed_s: float,
    hashfull: float,
    bound: int = BOUND_EXACT,
    line: tuple[str, ...],
) -> str:
    """Return one ``info`` line.

    Parameters
    ----------
    depth, selective_depth
        In plies.
    rank
        1 for the best line, and so on.
    score
        From the side to move.
    nodes, elapsed_s
        Since the search began.
    hashfull
        Share 0..1 of the table in use.
    bound
        What the score says of the value: `BOUND_EXACT`, `BOUND_LOWER` or `BOUND_UPPER`.
    line
        Moves as text.
    """
    words = [
        f"info depth {depth} seldepth {max(selective_depth, depth)} multipv {rank}",
        f"score {score_words(score)}{_BOUND_WORDS[bound]}",
        f"nodes {nodes} nps {round(nodes / max(elapsed_s, 1e-6))} hashfull {round(1000 * hashfull)}",
        f"time {round(1000 * elapsed_s)}",
    ]
    if line:
        words.append(f"pv {' '.join(line)}")
    return " ".join(words)
