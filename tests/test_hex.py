"""Hex: rules against a plain flood fill, of every size; small boards are won by who moves first."""

from __future__ import annotations

import random
from typing import Any

import pytest

from search.driver import search
from search.flags import Algorithm, Flags
from search.game_files import load_game
from search.limits import Limits
from search.perft import LeafCounter
from search.referee import Referee
from search.rules import RulesError
from search.scores import MATE, ONGOING

NEIGHBOURS = ((0, 1), (0, -1), (1, 0), (-1, 0), (1, -1), (-1, 1))
FAR = 1000


class PlainHex:
    """Hex on a dictionary of cells, (row, column) to player 0 or 1; the first one joins rows, the second columns."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.cells: dict[tuple[int, int], int] = {}

    def free(self) -> list[tuple[int, int]]:
        everywhere = [(row, column) for row in range(self.size) for column in range(self.size)]
        return [cell for cell in everywhere if cell not in self.cells]

    def around(self, cell: tuple[int, int]) -> list[tuple[int, int]]:
        found = [(cell[0] + down, cell[1] + right) for down, right in NEIGHBOURS]
        return [(row, column) for row, column in found if 0 <= row < self.size and 0 <= column < self.size]

    def needed(self, player: int) -> int:
        """Return how many more stones join a player's edges: relax all cells until nothing changes."""
        cost = {cell: 0 if self.cells.get(cell, player) == player and cell in self.cells else 1 for cell in self.all()}
        cost |= {cell: FAR for cell, owner in self.cells.items() if owner != player}
        least = {cell: cost[cell] if cell[player] == 0 else FAR for cell in self.all()}
        changed = True
        while changed:
            changed = False
            for cell in self.all():
                best = min((least[other] for other in self.around(cell)), default=FAR) + cost[cell]
                if best < least[cell]:
                    least[cell], changed = best, True
        return min(least[cell] for cell in self.all() if cell[player] == self.size - 1)

    def all(self) -> list[tuple[int, int]]:
        return [(row, column) for row in range(self.size) for column in range(self.size)]

    def joins(self, player: int) -> bool:
        """Tell whether stones of a player join his edges: a flood fill."""
        waiting = [cell for cell, owner in self.cells.items() if owner == player and cell[player] == 0]
        seen = set(waiting)
        while waiting:
            cell = waiting.pop()
            if cell[player] == self.size - 1:
                return True
            for other in self.around(cell):
                if self.cells.get(other) == player and other not in seen:
                    seen.add(other)
                    waiting.append(other)
        return False

    def perft(self, depth: int, turn: int = 0) -> int:
        if depth == 0:
            return 1
        if self.joins(1 - turn):
            return 0
        leaves = 0
        for cell in self.free():
            self.cells[cell] = turn
            leaves += self.perft(depth - 1, 1 - turn)
            del self.cells[cell]
        return leaves


def referee_of(size: int) -> Referee:
    return Referee(load_game(f"hex:{size}"), lambda _line: None)


@pytest.mark.parametrize("size", [2, 8, 9, 13])
def test_random_games_go_as_a_plain_flood_fill_says(size: int) -> None:
    """Sizes of one, two and three words; 8 fills its word, 9 is the first that does not fit one."""
    referee, rng = referee_of(size), random.Random(size)
    for _ in range(12 if size < 9 else 3):
        plain, position, turn = PlainHex(size), referee.game.parse(""), 0
        while True:
            facts = referee.facts(position)
            assert facts.outcome == (-MATE if plain.joins(1 - turn) else ONGOING)
            if facts.is_over:
                break
            needed = [plain.needed(player) for player in (turn, 1 - turn)]
            module = referee.game.module
            assert facts.evaluation == module.STONE_UNITS * (needed[1] - needed[0]) + module.TEMPO
            moves = referee.legal_moves(position)
            assert moves == [row * size + column + 1 for row, column in plain.free()]
            move = rng.choice(moves)
            plain.cells[divmod(move - 1, size)] = turn
            position, turn = referee.play(position, move), 1 - turn


@pytest.mark.parametrize("size", [2, 8, 9, 13])
def test_exactly_one_player_wins_a_full_board(size: int) -> None:
    referee, rng = referee_of(size), random.Random(size)
    game = referee.game
    for _ in range(40):
        cells = rng.sample(range(size * size), size * size)
        plain = PlainHex(size)
        plain.cells = {divmod(cell, size): number % 2 for number, cell in enumerate(cells)}
        boards = [sum(1 << cell for cell in cells[player::2]) for player in (0, 1)]
        # The position says whether the one who is not to move has won.
        has_won = [referee.facts(game.module._position(boards, 1 - player)).outcome == -MATE for player in (0, 1)]
        assert has_won == [plain.joins(0), plain.joins(1)]
        assert sum(has_won) == 1


def test_perft_counts_what_a_plain_program_counts() -> None:
    game = load_game("hex:3")
    counter = LeafCounter(game, notice=lambda _line: None)
    leaves = [counter.count(game.parse(""), plies) for plies in range(7)]
    assert leaves == [PlainHex(3).perft(plies) for plies in range(7)]
    assert leaves[5:] == [15120, 54720]


def first_wins(name: str, text: str = "", algorithm: Algorithm = Algorithm.ALPHA_BETA) -> bool:
    game = load_game(name)
    result = search(game, game.parse(text), Limits(), flags=Flags(algorithm=algorithm), notice=lambda _line: None)
    assert result.is_solved
    return result.score > 0


@pytest.mark.parametrize("size", [2, 4])
def test_small_boards_are_won_by_who_moves_first(size: int) -> None:
    """Strategy stealing (Nash) says so of any board; alpha-beta proves it."""
    assert first_wins(f"hex:{size}")


def test_a_board_and_its_mirrored_twin_have_one_winner() -> None:
    referee = referee_of(4)
    game = referee.game
    for move in (1, 2, 6, 7):
        position = referee.play(game.parse(""), move)
        twin = game.module.mirror(position)
        assert twin == referee.play(game.parse(""), 17 - move)
        scores = [
            search(game, each, Limits(), flags=Flags(), notice=lambda _line: None).score for each in (position, twin)
        ]
        assert scores[0] == scores[1]


def test_only_the_short_diagonals_corner_wins_two_by_two() -> None:
    """On 2x2 the acute corners lose and the obtuse ones, which touch both others, win."""
    assert not any(first_wins("hex:2", text) for text in ("b1", "a2"))
    assert all(first_wins("hex:2", text) for text in ("a1", "b2"))


def test_cells_are_written_as_players_write_them() -> None:
    game = load_game("hex:13x13")
    position = game.parse("a1 M13,g7")
    assert [int(position.first0) & 1, int(position.turn)] == [1, 1]
    assert game.text(position) == "a1m13g7"
    assert game.move_text(position, 2) == "b1"
    assert game.move_text(position, 14) == "a2"
    assert game.parse_move(position, "m13") == 169


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a1a1", "stone 2 of 'a1a1', a1, lies on another stone"),
        ("h1", "stone 1 of 'h1', 'h1', is no cell of this board: cells are a1 to g7"),
        ("a0", "is no cell"),
        ("a1-b2", "is no cell"),
        ("a1b1a2b2a3b3a4b4a5b5a6b6a7c1", "comes too late"),
    ],
)
def test_a_wrong_text_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(RulesError, match=sentence):
        load_game("hex:7").parse(text)


@pytest.mark.parametrize("text", ["1", "14", "7x8", "x", "7x", "-3", "٣"])
def test_there_are_boards_from_2_to_13(text: str) -> None:
    if text == "7x":
        assert load_game("hex:7x").module.SIZE == 7
        return
    with pytest.raises(RulesError, match="a board of Hex is a size from 2 to 13"):
        load_game(f"hex:{text}")


def test_a_random_filling_is_worth_what_its_flood_fill_says(monkeypatch: Any) -> None:
    """The plain twins of the compiled flood fills give what they give."""
    module = load_game("hex:9").module
    rng = random.Random(9)
    for _ in range(300):
        cells = rng.sample(range(81), rng.randint(20, 81))
        plain = PlainHex(9)
        plain.cells = {divmod(cell, 9): number % 2 for number, cell in enumerate(cells)}
        free = sum(1 << 9 * row + column for row, column in plain.free())
        for player in (0, 1):
            board = sum(1 << cell for cell in cells[player::2])
            needed = module.stones_needed(board, free, player)
            assert (needed == 0) == plain.joins(player)
            assert min(needed, FAR) == plain.needed(player) or (needed > 81 and plain.needed(player) >= FAR)
