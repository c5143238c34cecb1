"""Where the root's window goes next: one policy for the sequential driver and for the splitter; pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from search.scores import INFINITY, MATE_BOUND


class Window(NamedTuple):
    """Bounds ``alpha < beta`` from the root's side to move."""

    alpha: int
    beta: int

    def holds(self, score: int) -> bool:
        """Tell whether a result for this window is exact."""
        return self.alpha < score < self.beta


FULL_WINDOW = Window(-INFINITY, INFINITY)


@dataclass
class Aspiration:
    """Narrow windows around the expected score, widened when the score falls outside.

    Mate scores open the window at once: a window that bounces between an estimate and a mate never ends. The number
    of searches of one iteration is bounded by ``max_tries + 1``.
    """

    half_width: int = 24
    """First distance of the bounds from the expected score, in the game's units."""
    growth: int = 4
    max_tries: int = 3
    """After so many failures the window is full."""
    first_depth: int = 4
    """Shallower iterations get the full window: their scores predict little."""
    _scores: list[int] = field(default_factory=list)
    _tries: int = 0

    def begin(self, depth: int) -> Window:
        """Return the first window of an iteration; ``depth`` counts from 1."""
        self._tries = 0
        if depth < self.first_depth or len(self._scores) < 2:
            return FULL_WINDOW
        # Scores of odd and even depths differ where the side to move last profits: expect both.
        recent = self._scores[-2:]
        return self._opened(min(recent) - self.half_width, max(recent) + self.half_width)

    def after_failure(self, window: Window, score: int) -> Window:
        """Return the next window of the iteration, after a score outside the last one.

        Raises
        ------
        ValueError
            If the score was inside: there is nothing to search again.
        """
        if window.holds(score):
            raise ValueError(f"score {score} is exact in {window}")
        self._tries += 1
        if self._tries >= self.max_tries:
            return FULL_WINDOW
        reach = self.half_width * self.growth**self._tries
        # A failed bound is a proven one: it becomes the other end, with a unit of overlap to make the score exact.
        if score <= window.alpha:
            return self._opened(score - reach, score + 1)
        return self._opened(score - 1, score + reach)

    def finish(self, score: int) -> None:
        """Remember the exact score of an iteration."""
        self._scores.append(score)

    @staticmethod
    def _opened(alpha: int, beta: int) -> Window:
        if alpha <= -MATE_BOUND or beta >= MATE_BOUND:
            return FULL_WINDOW
        return Window(alpha, beta)
