"""Leaders and followers: who finds the answer first has it, and nobody waits for ever."""

from __future__ import annotations

import ctypes
import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import silent
from test_dynamic_search import EXACT

from cluster.position_rules import words_of
from cluster.records import Task, TaskResult, pack_results, pack_tasks
from cluster.task_runner import _answer_to, _give_answer, run_task, search_task
from search import workspace as at
from search.boards import BOARD_WORDS, BOARDS, MOST_BYTES, Board
from search.controls import CONTROL_WORDS, Controls
from search.game_files import load_game
from search.limits import NO_NODE_LIMIT
from search.scores import INFINITY
from search.searcher import Searcher
from search.statistics import Statistics
from tt_store.layout import WORD_BYTES
from tt_store.segment import Segment

GAME = load_game("connect_four")


@pytest.fixture
def searchers() -> Iterator[list[Searcher]]:
    with Segment.private(4, control_words=CONTROL_WORDS) as segment:
        controls = Controls(segment.control_address)
        yield [Searcher(GAME, segment, controls, flags=EXACT, slot=slot, notice=silent) for slot in range(3)]


def task_of(text: str, task_id: int, depth: int = 10, epoch: int = 1, node_limit: int = NO_NODE_LIMIT) -> Task:
    position = words_of(GAME.parse(text))
    window = -INFINITY, INFINITY
    return Task(task_id, epoch, position, depth, *window, 0, 0, node_limit, 0, 0, share_depth=4, board=1)


def follow(task_id: int, node_limit: int = NO_NODE_LIMIT) -> Task:
    return task_of("", task_id, depth=0, node_limit=node_limit)._replace(follows=True)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.001)


def test_a_leader_and_its_followers_find_what_one_finds_alone(searchers: list[Searcher]) -> None:
    controls, rng = searchers[0].controls, random.Random(3)
    with ThreadPoolExecutor(2) as pool:
        following = [pool.submit(run_task, searcher, follow(900 + slot)) for slot, searcher in enumerate(searchers[1:])]
        led = []
        try:
            for task_id in range(1, 60):
                text = "".join(str(rng.randint(1, 7)) for _ in range(6))
                task = task_of(text, task_id, depth=rng.randint(5, 9))
                led.append((task, run_task(searchers[0], task)))
        finally:
            # Whatever fails: nobody may follow when the memory goes.
            controls.stop(1)
        found = [future.result(timeout=60) for future in following]
    assert [result.task_id for _, result in led if result.is_finished] == [*range(1, 60)]
    assert [(result.task_id, result.status) for result in found] == [(900, at.STOPPED), (901, at.STOPPED)]
    assert sum(result.statistics.nodes for result in found) > 0
    for task, result in led:
        searchers[0].segment.clear()
        alone = search_task(searchers[0], task._replace(epoch=2, task_id=task.task_id + 100))
        assert (alone.score, alone.is_finished) == (result.score, True), task


def test_a_leader_that_is_ended_returns_what_a_follower_has_answered(searchers: list[Searcher]) -> None:
    leader, controls = searchers[0], searchers[0].controls
    task = task_of("", 5, depth=40)
    answer = TaskResult(5, 1, 12, task.alpha, task.beta, at.RUNNING, (4,), Statistics(nodes=1), 0.5, 4)
    with ThreadPoolExecutor(1) as pool:
        leading = pool.submit(run_task, leader, task)
        wait_for(lambda: controls.task_board(1).number == 5)
        controls.answer_board(1).write(5, pack_results([answer]))
        controls.abort(5)
        result = leading.result(timeout=60)
    assert (result.score, result.line, result.is_finished) == (12, (4,), True)
    assert result.statistics.nodes != 1, "the work is its own"


class DisturbedBoard(Board):
    """A board on which another one writes at the same moment, for the first few looks at it."""

    looks, disturbed = 0, 3

    def read(self) -> tuple[int, bytes] | None:
        self.looks += 1
        return None if self.looks <= self.disturbed else super().read()


def test_a_disturbed_answer_is_written_again_and_read_again() -> None:
    words = (ctypes.c_int64 * BOARD_WORDS)()
    task = task_of("", 5)
    answer = TaskResult(5, 1, 12, task.alpha, task.beta, at.RUNNING, (4,), Statistics(nodes=1), 0.5, 4)
    written = DisturbedBoard(ctypes.addressof(words))
    _give_answer(written, 5, pack_results([answer]))
    assert written.looks == 4
    read = DisturbedBoard(ctypes.addressof(words))
    assert _answer_to(task, read) == answer
    assert read.looks == 4
    read.disturbed = 10**6
    assert _answer_to(task, read) is None, "nobody looks for ever"
    assert _answer_to(task._replace(task_id=6), Board(ctypes.addressof(words))) is None


@pytest.mark.parametrize("answer", [None, b"", b"\x90", pack_tasks([task_of("", 5)])])
def test_a_leader_that_is_ended_without_an_answer_says_so(searchers: list[Searcher], answer: bytes | None) -> None:
    controls = searchers[0].controls
    with ThreadPoolExecutor(1) as pool:
        leading = pool.submit(run_task, searchers[0], task_of("", 5, depth=40))
        wait_for(lambda: controls.task_board(1).number == 5)
        if answer is not None:
            controls.answer_board(1).write(5, answer)
        controls.abort(5)
        assert leading.result(timeout=60).status == at.ABORTED


def test_a_follower_that_is_first_answers_and_ends_the_others(searchers: list[Searcher]) -> None:
    """The leader is one that never comes to an end: it has written its task, and died."""
    controls = searchers[0].controls
    task = task_of("32164625", 7, depth=6)
    controls.task_board(1).write(7, pack_tasks([task]))
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(run_task, searchers[1], follow(8))
        wait_for(lambda: controls.is_aborted(7))
        controls.stop(1)
        result = following.result(timeout=60)
    written = controls.answer_board(1).read()
    assert written is not None
    assert written[0] == 7
    assert result.statistics.nodes > 10


def test_a_follower_is_recalled_whether_it_waits_or_searches(searchers: list[Searcher]) -> None:
    controls = searchers[0].controls
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(run_task, searchers[1], follow(8))
        controls.abort(8)
        assert following.result(timeout=60).status == at.ABORTED
        controls.task_board(1).write(9, pack_tasks([task_of("", 9, depth=40)]))
        following = pool.submit(run_task, searchers[1], follow(10))
        before = controls.progress(1)
        wait_for(lambda: controls.progress(1) not in (0, before))
        controls.abort(10)
        result = following.result(timeout=60)
    assert (result.status, result.task_id) == (at.ABORTED, 10)
    assert not controls.is_aborted(9), "the others go on"


def test_a_follower_has_a_limit_of_its_own(searchers: list[Searcher]) -> None:
    searchers[0].controls.task_board(1).write(9, pack_tasks([task_of("", 9, depth=40)]))
    result = run_task(searchers[1], follow(8, node_limit=5_000))
    assert result.status == at.OUT_OF_NODES
    assert 4_900 <= result.statistics.nodes <= 5_000


@pytest.mark.parametrize(
    "text", [b"", b"\xff" * 40, pack_tasks([task_of("", 9, epoch=2)]), pack_tasks([task_of("", 8)])]
)
def test_nobody_follows_what_is_no_task_of_the_epoch(searchers: list[Searcher], text: bytes) -> None:
    controls = searchers[0].controls
    controls.task_board(1).write(9, text)
    stopper = threading.Timer(0.2, controls.stop, (1,))
    stopper.start()
    result = run_task(searchers[1], follow(11))
    stopper.join()
    assert (result.status, result.statistics.nodes) == (at.STOPPED, 0)


def test_a_task_too_long_for_a_board_is_searched_alone(
    searchers: list[Searcher], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cluster.task_runner.MOST_BYTES", 20)
    result = run_task(searchers[0], task_of("", 5, depth=3))
    assert (result.is_finished, searchers[0].controls.task_board(1).number) == (True, 0)


def test_a_board_shows_the_last_text_whole_or_not_at_all() -> None:
    words = bytearray(BOARD_WORDS * WORD_BYTES)
    buffer = (ctypes.c_char * len(words)).from_buffer(words)
    board = Board(ctypes.addressof(buffer))
    assert (board.number, board.read()) == (0, None)
    board.write(3, b"first")
    board.write(4, b"second, longer")
    assert board.read() == (4, b"second, longer")
    for at_byte in (0, 8, 16, 24, 30):
        kept = words[at_byte]
        words[at_byte] ^= 0x15
        assert board.read() is None
        words[at_byte] = kept
    assert board.read() == (4, b"second, longer")
    board.write(5, b"x" * MOST_BYTES)
    assert board.read() == (5, b"x" * MOST_BYTES)
    with pytest.raises(ValueError, match="does not fit"):
        board.write(6, b"x" * (MOST_BYTES + 1))


def test_boards_do_not_overlap(searchers: list[Searcher]) -> None:
    controls = searchers[0].controls
    for board in range(1, BOARDS + 1):
        controls.task_board(board).write(board, bytes([board]) * MOST_BYTES)
        controls.answer_board(board).write(BOARDS + board, bytes([BOARDS + board]) * MOST_BYTES)
    for board in range(1, BOARDS + 1):
        assert controls.task_board(board).read() == (board, bytes([board]) * MOST_BYTES)
        assert controls.answer_board(board).read() == (BOARDS + board, bytes([BOARDS + board]) * MOST_BYTES)
