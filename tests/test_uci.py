"""The engine as a GUI meets it: one best move for each go, never late, never before it is asked for."""

from __future__ import annotations

import queue
import random
import sys
import threading
import time
from collections.abc import Iterator

import chess
import chess.engine
import pytest
from benchmarks.fuzz_uci import is_go

from cluster.uci import thinking
from cluster.uci.clock import UNLIMITED, Allotment, Clock, Patience
from cluster.uci.commands import CommandError, SetOption, parse_go, parse_position, parse_setoption
from cluster.uci.engine import Engine
from cluster.uci.options import Options, changed, declarations

WAIT_S = 250.0
"""A kernel may have to be compiled first, on a busy machine."""


def words(text: str) -> list[str]:
    return text.split()


class Gui:
    """Talks to an engine of this process line by line."""

    def __init__(self, game: str = "chess", workers: int = 1, address: str | None = None) -> None:
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.heard: list[str] = []
        engine = Engine(game, Options(hash_mb=4, workers=workers), address, self._answers.put)
        self._thread = threading.Thread(target=engine.run, args=(iter(self._lines.get, None),), daemon=True)
        self._thread.start()

    def say(self, *lines: str) -> None:
        for line in lines:
            self._lines.put(line)

    def hear(self, word: str, timeout_s: float = WAIT_S) -> str:
        """Return the next line that begins with a word; fails if none comes."""
        deadline_s = time.monotonic() + timeout_s
        while True:
            line = self._answers.get(timeout=max(0.0, deadline_s - time.monotonic()))
            self.heard.append(line)
            if line.split(" ")[0] == word:
                return line

    def hears_nothing(self, word: str, for_s: float) -> bool:
        try:
            self.hear(word, for_s)
        except queue.Empty:
            return True
        return False

    def ask(self, position: str, go: str) -> tuple[list[str], str]:
        """Return the info lines and the best move of a search that ends by itself."""
        self.say(f"position {position}", f"go {go}")
        self.heard.clear()
        best = self.hear("bestmove").split()[1]
        return [line for line in self.heard if line.startswith("info depth")], best

    def leave(self) -> None:
        self._lines.put(None)
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive()


@pytest.fixture(scope="module")
def shared() -> Iterator[Gui]:
    gui = Gui()
    gui.say("isready")
    gui.hear("readyok")
    yield gui
    gui.leave()


@pytest.fixture
def gui(shared: Gui) -> Gui:
    shared.say("stop", "ucinewgame", "isready")
    shared.hear("readyok")
    return shared


def is_legal(fen: str, move: str) -> bool:
    board = chess.Board() if fen == "startpos" else chess.Board(fen.removeprefix("fen "))
    return move in {legal.uci() for legal in board.legal_moves}


def test_it_says_what_it_is_and_what_may_be_set(gui: Gui) -> None:
    gui.heard.clear()
    gui.say("uci")
    gui.hear("uciok")
    assert any(line.startswith("id name rootsplit") for line in gui.heard)
    for name in ("Hash", "Threads", "MultiPV", "Contempt", "UCI_Chess960", "Move Overhead", "Clear Hash", "Ponder"):
        assert any(line.startswith(f"option name {name} type") for line in gui.heard), name


def test_two_hundred_searches_that_are_stopped_at_once(gui: Gui) -> None:
    gui.say("position startpos")
    for _ in range(200):
        gui.say("go depth 30", "stop")
        assert is_legal("startpos", gui.hear("bestmove").split()[1])
    assert gui.hears_nothing("bestmove", 0.1)


def test_no_best_move_before_stop_however_trivial_the_position(gui: Gui) -> None:
    gui.say("position fen 8/5kR1/8/3K4/8/8/8/8 b - - 0 143", "go infinite")
    assert gui.hears_nothing("bestmove", 1.0)
    gui.say("stop")
    assert gui.hear("bestmove").split()[1] in ("f7g7", "f7e8", "f7f8", "f7f6")
    assert gui.hears_nothing("bestmove", 0.1)


def test_pondering_waits_for_the_move_and_then_for_the_clock(gui: Gui) -> None:
    gui.say("position startpos moves e2e4 e7e5", "go ponder wtime 3000 btime 3000")
    assert gui.hears_nothing("bestmove", 0.5)
    started_s = time.monotonic()
    gui.say("ponderhit")
    assert is_legal("startpos", "e2e4")
    gui.hear("bestmove")
    assert time.monotonic() - started_s < 2.5


CAPTURES = "fen 1q2B2q/2q1B1q1/3qkq2/qrr1rRRQ/3QKQ2/2Q3Q1/1Q2n2Q/Q3n3 w - - 10"


@pytest.mark.parametrize(
    "go", ["nodes 1", "nodes 100", "nodes 1000", "movetime 50", "movetime 0", "nodes 0", "depth 0"]
)
@pytest.mark.parametrize("position", ["startpos", CAPTURES])
def test_the_smallest_limits_bring_a_score_and_a_legal_move(gui: Gui, position: str, go: str) -> None:
    infos, best = gui.ask(position, go)
    fen = position + " 1" if position == CAPTURES else position
    assert is_legal(fen, best)
    assert infos
    assert is_legal(fen, infos[-1].split(" pv ")[1].split()[0])
    told = words(infos[-1])
    if go.startswith("nodes"):
        assert int(told[told.index("nodes") + 1]) <= max(1, int(go.split()[1])) + 8


def test_a_node_limit_is_forgotten_by_the_next_search(gui: Gui) -> None:
    gui.ask("startpos", "nodes 100")
    infos, _ = gui.ask("startpos", "depth 7")
    assert infos[-1].startswith("info depth 7 ")


def test_a_new_game_and_a_cleared_table_repeat_the_search(gui: Gui) -> None:
    told = []
    for command in ("ucinewgame", "setoption name Clear Hash", "isready"):
        gui.say(command)
        infos, _ = gui.ask("startpos", "depth 7")
        told.append([words(line)[words(line).index("nodes") + 1] for line in infos])
    assert told[0] == told[1] != told[2]


def test_a_second_go_ends_the_first(gui: Gui) -> None:
    gui.say("position startpos", "go infinite", "go depth 3")
    gui.hear("bestmove")
    gui.hear("bestmove")
    assert gui.hears_nothing("bestmove", 0.1)


@pytest.mark.parametrize(
    ("fen", "score"),
    [("7k/6Q1/6K1/8/8/8/8/8 b - - 0 1", "score mate"), ("7k/8/6Q1/8/8/8/8/K7 b - - 0 1", "score cp 0")],
)
def test_a_finished_game_has_no_move(gui: Gui, fen: str, score: str) -> None:
    infos, best = gui.ask(f"fen {fen}", "depth 3")
    assert best == "(none)"
    assert score in infos[-1]


@pytest.mark.parametrize("castling", ["e1h1", "e1g1"])
def test_castling_is_understood_both_ways_and_written_in_one(gui: Gui, castling: str) -> None:
    fen = "fen r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 4 1"
    _, reply = gui.ask(f"{fen} moves {castling}", "depth 1")
    board = chess.Board(fen.removeprefix("fen "))
    board.push_uci("e1g1")
    assert board.is_legal(chess.Move.from_uci(reply))


def test_chess960_castles_by_taking_the_rook(gui: Gui) -> None:
    gui.say("setoption name UCI_Chess960 value true")
    fen = "r3k2r/pppq1ppp/8/8/8/8/PPPQ1PPP/R3K2R w KQkq - 0 1"
    infos, best = gui.ask(f"fen {fen}", "depth 1 searchmoves e1h1")
    gui.say("setoption name UCI_Chess960 value false")
    assert best == "e1h1"
    assert " pv e1h1" in infos[-1]


LOSING = "fen r1bqkb1r/ppp2ppp/5n2/nB1Pp1N1/8/8/PPPP1PPP/RNBQK2R b KQkq - 2 6"


@pytest.mark.parametrize(
    ("lines", "search_moves", "wanted"), [(10, "", 6), (4, " searchmoves c7c6 e8e7", 2), (3, "", 3)]
)
def test_several_lines_of_one_depth_never_rise(gui: Gui, lines: int, search_moves: str, wanted: int) -> None:
    gui.say(f"setoption name MultiPV value {lines}")
    infos, best = gui.ask(LOSING, f"depth 6{search_moves}")
    gui.say("setoption name MultiPV value 1")
    told = [words(line) for line in infos if line.startswith("info depth 6 ")]
    moves = [line[line.index("pv") + 1] for line in told]
    scores = [int(line[line.index("cp") + 1]) for line in told]
    assert [line[line.index("multipv") + 1] for line in told] == [str(rank) for rank in range(1, wanted + 1)]
    assert len(set(moves)) == wanted
    assert scores == sorted(scores, reverse=True)
    assert best == moves[0]


def test_a_bad_position_is_told_and_harms_nothing(gui: Gui) -> None:
    gui.say("position startpos moves e2e4")
    gui.heard.clear()
    gui.say("position fen 8/8/8/8/8/8/8/8 w - - 0 1", "position startpos moves e2e5", "position nonsense", "isready")
    gui.hear("readyok")
    assert sum(line.startswith("info string") for line in gui.heard) == 3
    gui.say("go depth 2")
    board = chess.Board()
    board.push_uci("e2e4")
    assert chess.Move.from_uci(gui.hear("bestmove").split()[1]) in board.legal_moves


def test_one_legal_move_is_played_at_once_by_the_clock_and_searched_in_analysis(gui: Gui) -> None:
    fen = "fen r1b1k2r/1pqp1ppp/p1n1pn2/8/4P3/2NBB3/PPP1NPPb/R2Q1RK1 w kq - 0 10"
    started_s = time.monotonic()
    infos, best = gui.ask(fen, "wtime 600000 btime 600000")
    assert best == "g1h1"
    assert infos
    assert time.monotonic() - started_s < 2.0
    infos, best = gui.ask(fen, "depth 6")
    assert best == "g1h1"
    assert infos[-1].startswith("info depth 6 ")


def test_the_end_of_the_input_ends_a_search() -> None:
    gui = Gui()
    gui.say("position startpos", "go infinite")
    gui.leave()
    gui.hear("bestmove", 1.0)


def test_other_games_speak_the_same_words() -> None:
    gui = Gui("connect_four")
    infos, best = gui.ask("fen 445566", "depth 4")
    gui.leave()
    assert best in ("3", "7")
    assert "score mate 1" in infos[-1]


def test_random_commands_never_silence_it(gui: Gui) -> None:
    """Whatever it hears, it answers each go with one best move, and is there in the end."""
    chance = random.Random(5)
    vocabulary = words(
        "uci isready stop ponderhit go infinite depth 3 nodes 50 movetime 1 wtime btime 100 -5 x searchmoves e2e4"
        " position startpos fen moves e7e5 setoption name MultiPV value 1 Contempt 10 8/8 w - debug register joho"
    )
    goes = 0
    gui.heard.clear()
    for _ in range(600):
        line = " ".join(chance.choice(vocabulary) for _ in range(chance.randrange(1, 7)))
        goes += is_go(line)
        gui.say(line)
    gui.say("stop", "uci")
    gui.hear("uciok")
    gui.say("isready", "go depth 1")
    gui.hear("bestmove")
    while gui.heard.count("readyok") < 1:
        gui.hear("readyok")
    while sum(line.startswith("bestmove") for line in gui.heard) < goes + 1:
        gui.hear("bestmove")
    gui.say("stop", "setoption name Hash value 4", "isready")
    gui.hears_nothing("nothing", 0.4)
    assert sum(line.startswith("bestmove") for line in gui.heard) == goes + 1


@pytest.mark.slow
def test_python_chess_plays_a_game_with_it_and_nothing_is_left() -> None:
    command = [sys.executable, "-m", "cluster.cli", "uci", "--workers", "2", "--table", "4"]
    with chess.engine.SimpleEngine.popen_uci(command, timeout=WAIT_S) as engine:
        board = chess.Board()
        clocks = [2.0, 2.0]
        while not board.is_game_over() and board.ply() < 24:
            started_s = time.monotonic()
            limit = chess.engine.Limit(white_clock=clocks[0], black_clock=clocks[1], white_inc=0.01, black_inc=0.01)
            played = engine.play(board, limit)
            clocks[board.ply() % 2] += 0.01 - (time.monotonic() - started_s)
            assert min(clocks) > 0
            assert played.move is not None
            board.push(played.move)


def test_parsing() -> None:
    go = parse_go(
        words("wtime 1000 btime 2000 winc 10 movestogo 0 depth 5 searchmoves e2e4 d2d4 xyz"),
        words("e2e4 d2d4").__contains__,
    )
    assert go.search_moves == ("e2e4", "d2d4")
    assert go.clocks == (Clock(1.0, 0.01), Clock(2.0))
    assert go.limits.depth == 5
    assert parse_position(words("fen a b c moves x y")).moves == ("x", "y")
    assert parse_setoption(words("name Move Overhead value 10")) == SetOption("Move Overhead", "10")
    for bad in ("depth x", "nodes"):
        with pytest.raises(CommandError):
            parse_go(words(bad), bool)


def test_options_are_checked() -> None:
    options = changed(Options(), parse_setoption(words("name hash value 3")))
    assert options.hash_mb == 3
    assert any(line == "option name Hash type spin default 3 min 1 max 1048576" for line in declarations(options))
    for bad in ("name Hash value 0", "name Hash value abc", "name UCI_Chess960 value maybe", "name Nothing value 1"):
        with pytest.raises(CommandError):
            changed(Options(), parse_setoption(words(bad)))


@pytest.mark.parametrize("left_s", [-1.0, 0.0, 0.01, 0.1, 1.0, 60.0, 7200.0])
@pytest.mark.parametrize("moves_to_go", [None, 1, 2, 40])
@pytest.mark.parametrize("increment_s", [0.0, 0.01, 5.0])
def test_a_move_never_takes_what_is_not_there(left_s: float, moves_to_go: int | None, increment_s: float) -> None:
    soft_s, hard_s = Clock(left_s, increment_s, moves_to_go).allot(0.03)
    assert 0 < soft_s <= hard_s
    assert hard_s <= max(0.001, left_s - 0.03)


def test_patience_grows_with_doubt() -> None:
    assert Clock().allot(0.03) == UNLIMITED
    steady, unsteady = Patience(Allotment(1.0, 4.0), True), Patience(Allotment(1.0, 4.0), True)
    for move in (1, 1, 1, 1):
        assert not steady.is_over(move, 0.3)
    assert steady.is_over(1, 0.5)
    assert not unsteady.is_over(1, 0.3)
    assert not unsteady.is_over(2, 0.7)
    assert Patience(Allotment(1.0, 4.0), False).is_over(1, 0.0)


def test_a_score_outside_its_window_is_told_as_a_bound(shared: Gui, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thinking, "BOUNDS_AFTER_S", 0.0)
    # The score jumps from one iteration to the next, and so leaves its windows.
    infos, _ = shared.ask("fen r4q1k/p2bR1rp/2p2Q1N/5p2/5p2/2P5/PP3PPP/R5K1 w - - 0 1", "depth 9")
    told = [line.split() for line in infos]
    bounds = [line for line in told if "lowerbound" in line or "upperbound" in line]
    assert bounds
    for line in bounds:
        place = line.index("score")
        assert line[place + 1] in ("cp", "mate")
        assert line[place + 3] in ("lowerbound", "upperbound")
        exact = next(each for each in told if each[2] == line[2] and len({"lowerbound", "upperbound"} & {*each}) == 0)
        assert int(exact[exact.index("nodes") + 1]) > int(line[line.index("nodes") + 1]) > 0
    assert int(told[-1][2]) == 9
    assert not {"lowerbound", "upperbound"} & {*told[-1]}


@pytest.mark.ray
def test_an_engine_on_ray_answers_each_go_once() -> None:
    gui = Gui(workers=2, address="local")
    try:
        gui.say("isready")
        gui.hear("readyok")
        infos, best = gui.ask("startpos moves e2e4", "nodes 20000")
        assert infos
        assert best in {
            move.uci() for move in chess.Board("rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1").legal_moves
        }
        gui.say("position startpos", "go infinite")
        assert gui.hears_nothing("bestmove", 0.5)
        gui.say("stop")
        gui.hear("bestmove", 30.0)
        assert gui.hears_nothing("bestmove", 0.3)
        assert gui.ask("fen 6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1", "depth 4")[1] == "a1a8"
    finally:
        gui.leave()
