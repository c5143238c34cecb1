"""Workers that search one subtree together: the answer is the sequential one, whatever they see of each other."""

from __future__ import annotations

import ctypes
import itertools
import random
from dataclasses import replace

import numpy as np
import pytest
from conftest import silent
from numba import njit
from test_dynamic_search import EXACT
from test_kernel import EXPLICIT_TREE, forest, rows_of, true_value

from cluster.executor import SerialExecutor, ThreadExecutor
from cluster.records import TaskResult, WorkerInfo
from cluster.report import SearchReport
from cluster.request import SearchRequest
from cluster.root_splitter import SingleSplitter
from cluster.session import Session
from cluster.simulated_executor import ClusterModel, SimulatedExecutor
from cluster.split_settings import SplitSettings
from cluster.splitter import Root
from cluster.team_splitter import TeamSplitter
from search import jit
from search import workspace as at
from search.algorithms import flags_to_depth
from search.aspiration import FULL_WINDOW
from search.controls import CONTROL_WORDS, SHARED_WORDS, Controls
from search.driver import search
from search.game_files import load_game
from search.limits import Limits
from search.referee import Referee
from search.rules import Game
from search.searcher import Job, Searcher
from search.statistics import Statistics
from tt_store.layout import WORD_BYTES
from tt_store.segment import Segment

ALL_NODES = SplitSettings(
    share_nodes=1.0,
    selective_share_nodes=1.0,
    grain_s=5e-5,
    team_grain_s=5e-5,
    master_s=0.0,
    prefix_s=0.0,
    tasks_per_worker=1e6,
)
"""Teams share every node, and tasks are as small as they can be."""
CASES = (
    ("connect_four", "32164625", 7),
    ("kalah", "0,3,1,0,5,2,9/4,0,0,1,6,2,15 n", 7),
    ("random_tree", "3:1-6:30:50", 7),
    ("random_tree", "4:8-16:30:60", 5),
    ("tic_tac_toe", "", 9),
    ("chess", "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq -", 3),
)


def team_search(
    game: Game, text: str, depth: int, workers: int, machines: int, step_nodes: float, settings: SplitSettings
) -> SearchReport:
    """Search by teams in virtual time, so that workers take turns after a few nodes each."""
    model = ClusterModel(node_rate=20_000, step_s=step_nodes / 20_000, workers_a_machine=-(-workers // machines))
    executor = SimulatedExecutor(game, workers, 4, model=model, flags=flags_to_depth(game, EXACT), notice=silent)
    with Session(game, executor, 4, silent) as session:
        return session.search(SearchRequest(text, (), Limits(depth=depth), "team", settings=settings))


@pytest.mark.parametrize(("name", "text", "depth"), CASES)
def test_teams_of_every_size_find_the_sequential_values(name: str, text: str, depth: int) -> None:
    game = load_game(name)
    referee = Referee(game, silent)
    flags = flags_to_depth(game, EXACT)
    true = search(game, game.parse(text), Limits(depth=depth), flags=flags, notice=silent)
    for workers, machines, size in ((2, 1, 2), (8, 1, 8), (5, 2, 2), (6, 3, 16)):
        report = team_search(game, text, depth, workers, machines, 7, replace(ALL_NODES, team_size=size))
        scores = [iteration.score for iteration in report.result.iterations]
        assert scores == [iteration.score for iteration in true.iterations], (workers, machines, size)
        line = report.result.line
        assert tuple(referee.legal_prefix(report.result.position, line)[0]) == line != ()


def test_teams_find_what_minimax_says_of_small_trees() -> None:
    game = load_game(EXPLICIT_TREE)
    for root, depth, side in forest(400, seed=20):
        rng = random.Random(depth)
        text = f"{game.module.plant(rows_of(root))}:0:{side}"
        report = team_search(game, text, depth, rng.randint(2, 6), 1, rng.choice((1, 2, 9)), ALL_NODES)
        assert report.result.score == true_value(root, depth, side), text


@pytest.mark.parametrize(
    ("name", "text", "depth"),
    [("connect_four", "4453", 10), *(("random_tree", f"{seed}:2-5:30:50", 10) for seed in range(4))],
)
def test_a_subtree_that_others_have_decided_is_left_for_the_right_node(name: str, text: str, depth: int) -> None:
    game = load_game(name)
    true = search(game, game.parse(text), Limits(depth=depth), flags=EXACT, notice=silent)
    for workers in (3, 6):
        report = team_search(game, text, depth, workers, 1, 7, ALL_NODES)
        scores = [iteration.score for iteration in report.result.iterations]
        assert scores == [iteration.score for iteration in true.iterations], workers


_resume = jit.specialise("search.sharing", load_game("tic_tac_toe"), EXACT).resume


@njit
def resume(memory: int) -> int:
    return _resume(memory)


def test_only_the_node_that_was_decided_goes_on() -> None:
    """A wrong node would store what is true of another one, which few searches would ever meet again."""
    words = np.zeros(at.MOVES // WORD_BYTES, np.int64)
    memory = words.ctypes.data

    def put(offset: int, value: int) -> None:
        words[offset // WORD_BYTES] = value

    for offset, value in ((at.STATUS, at.DECIDED), (at.SHARED_NODES, 3), (at.DECIDED_NODE, 1), (at.DECIDED_SCORE, 77)):
        put(offset, value)
    for number in (3, 2):
        put(at.SHARED_NODES, number)
        assert resume(memory) == 0
        assert words[at.STATUS // WORD_BYTES] == at.DECIDED
    put(at.SHARED_NODES, 1)
    assert resume(memory) == 77
    assert words[at.STATUS // WORD_BYTES] == at.RUNNING
    put(at.STATUS, at.ABORTED)
    assert resume(memory) == 0
    assert words[at.STATUS // WORD_BYTES] == at.ABORTED


def splitter(team_size: int = 2, follow_s: float = 0.0) -> TeamSplitter:
    game = load_game("tic_tac_toe")
    position = tuple(int(word) for word in game.parse(""))
    settings = SplitSettings(team_size=team_size, follow_s=follow_s)
    team = TeamSplitter(Root(position, 1, lambda *_: []), itertools.count(1), settings)
    team.start(5, FULL_WINDOW, 1, 4)
    return team


def ended(task_id: int, status: int = at.RUNNING) -> TaskResult:
    return TaskResult(task_id, 1, 7, *FULL_WINDOW, status, (3,), Statistics(nodes=10), 0.1)


ONE, TWO, THREE = WorkerInfo("a", 1), WorkerInfo("a", 2), WorkerInfo("a", 3)


def test_a_leader_gets_the_task_and_the_others_are_told_once_to_follow() -> None:
    team = splitter()
    (leader, task), (follower, follow) = team.next_tasks([ONE, TWO])
    assert (leader, follower) == (ONE, TWO)
    assert (task.follows, follow.follows) == (False, True)
    assert task.board == follow.board > 0
    assert (task.depth, follow.epoch, task.share_depth < 5) == (5, 1, True)
    assert team.next_tasks([], [ONE, TWO]) == []
    assert team.aborts() == []
    team.on_result(ended(task.task_id))
    found = team.result()
    assert found is not None
    assert (found.score, found.line) == (7, (3,))
    team.on_result(ended(follow.task_id, at.STOPPED)._replace(score=-99))
    assert team.result() == found
    assert team.next_tasks([ONE, TWO]) == []


def test_a_follower_has_no_say() -> None:
    team = splitter()
    (_, task), (_, follow) = team.next_tasks([ONE, TWO])
    team.on_result(ended(follow.task_id))
    assert team.result() is None
    ((info, again),) = team.next_tasks([TWO])
    assert (info, again.follows, again.task_id != follow.task_id) == (TWO, True, True)
    team.on_result(ended(task.task_id)._replace(epoch=9))
    assert team.result() is None


def test_a_team_has_no_more_members_than_the_settings_say() -> None:
    team = splitter()
    tasks = dict(team.next_tasks([ONE, TWO, THREE]))
    assert tasks[ONE].board == tasks[TWO].board
    assert THREE not in tasks, "the root is one task, and who follows nobody waits"
    alone = splitter(team_size=1)
    ((_, task),) = alone.next_tasks([ONE, TWO])
    assert (task.board, task.follows) == (0, False)


def test_a_follower_of_a_lost_leader_is_recalled_until_it_comes_and_leads() -> None:
    team = splitter()
    (_, task), (_, follow) = team.next_tasks([ONE, TWO])
    team.on_lost(task.task_id)
    assert team.aborts() == team.aborts() == [follow.task_id], "a control word may be lost"
    team.on_result(ended(follow.task_id, at.ABORTED))
    assert team.aborts() == []
    ((info, again),) = team.next_tasks([TWO])
    assert (info, again.follows) == (TWO, False)
    assert again._replace(task_id=0) == task._replace(task_id=0)
    team.on_result(ended(task.task_id))
    assert team.result() is None, "the result of a lost task counts for nothing"
    # Whoever takes the place of the lost one follows now.
    (_, follow) = team.next_tasks([ONE])[0]
    assert follow.follows
    team.on_result(ended(again.task_id))
    assert team.result() is not None


def test_a_lost_follower_is_nobodys_loss() -> None:
    team = splitter()
    (_, task), (_, follow) = team.next_tasks([ONE, TWO])
    team.on_lost(follow.task_id)
    assert team.aborts() == []
    assert [task.follows for _, task in team.next_tasks([TWO])] == [True]
    team.on_result(ended(task.task_id))
    assert team.result() is not None


def test_short_root_searches_are_not_worth_telling_many() -> None:
    """Each follower costs a message; that of a single team's first look is not worth it, the second one is."""
    team = splitter(team_size=16, follow_s=0.001)
    crowd = [WorkerInfo("a", number) for number in range(16)]
    ((leader, task),) = team.next_tasks(crowd)
    assert (leader.worker, task.follows) == (0, False)
    told = team.next_tasks(crowd[1:], crowd[:1])
    assert [info.worker for info, task in told if task.follows] == list(range(1, 16))
    team.on_result(ended(task.task_id)._replace(elapsed_s=2.0))
    team.start(6, FULL_WINDOW, 2, 16)
    assert sum(task.follows for _, task in team.next_tasks(crowd)) == 15


def test_machines_race_a_selective_search_and_the_first_result_counts() -> None:
    game = load_game("tic_tac_toe")
    position = tuple(int(word) for word in game.parse(""))
    root = Root(position, 1, lambda *_: [], depth_change=lambda *_: (0, 0))
    team = TeamSplitter(root, itertools.count(1), SplitSettings(follow_s=0.0))
    team.start(5, FULL_WINDOW, 1, 4)
    crowd = [ONE, TWO, WorkerInfo("b", 3), WorkerInfo("b", 4)]
    tasks = dict(team.next_tasks(crowd))
    assert [tasks[info].follows for info in crowd] == [False, True, False, True]
    assert tasks[ONE]._replace(task_id=0) == tasks[crowd[2]]._replace(task_id=0)
    team.on_lost(tasks[ONE].task_id)
    assert team.aborts() == [tasks[TWO].task_id]
    team.on_result(ended(tasks[crowd[2]].task_id))
    assert team.result() is not None


def test_the_slower_machines_of_a_race_are_ended() -> None:
    game = load_game("tic_tac_toe")
    position = tuple(int(word) for word in game.parse(""))
    race = SingleSplitter(Root(position, 1, lambda *_: []), itertools.count(1), is_race=True)
    race.start(5, FULL_WINDOW, 1, 3)
    (_, mine), (_, yours) = race.next_tasks([ONE, TWO, WorkerInfo("b", 3)])
    race.on_result(ended(yours.task_id))
    assert race.aborts() == [mine.task_id]
    race.on_result(ended(mine.task_id)._replace(score=-99))
    found = race.result()
    assert found is not None
    assert found.score == 7


def test_words_left_behind_change_no_value() -> None:
    """A worker that dies leaves the keys of its positions behind: moves are then put off, and searched all the same."""
    game = load_game("connect_four")
    position = game.parse("32164625")
    words = np.zeros(CONTROL_WORDS, np.int64)
    controls = Controls(words.ctypes.data)
    with Segment.private(4) as segment:
        searcher = Searcher(game, segment, controls, flags=EXACT, notice=silent)
        true = searcher.run(Job(position, 8))
        referee = Referee(game, silent)
        shared = (ctypes.c_int64 * SHARED_WORDS).from_address(controls.sharing_address)
        keys = {searcher.referee.facts(position).entry_key}
        level = [position]
        for _ in range(3):
            level = [referee.play(each, move) for each in level for move in referee.legal_moves(each)]
            keys |= {searcher.referee.facts(each).entry_key for each in level}
        salt = int(searcher._get(at.KEY_SALT))
        for key in keys:
            word = key ^ salt
            shared[word % SHARED_WORDS] = word
        segment.clear()
        searcher.forget()
        plain, shared_nodes = true.statistics.nodes, searcher.run(Job(position, 8, share_depth=0))
        assert shared_nodes.score == true.score
        assert shared_nodes.statistics.nodes != plain, "no move was put off"


@pytest.mark.parametrize("strategy", ["team", "dynamic"])
def test_nodes_of_all_members_count_for_the_limit(strategy: str) -> None:
    game = load_game("connect_four")
    with Session(game, ThreadExecutor(game, 3, notice=silent), 64, silent) as session:
        for limit in (1, 1_000, 200_000):
            request = SearchRequest("", (), Limits(nodes=limit), strategy)
            report = session.search(request)
            assert report.result.statistics.nodes <= limit + 3 * 64
            assert report.result.best_move is not None


def test_a_selective_search_has_a_leader_on_each_machine() -> None:
    game = load_game("chess")
    executor = SimulatedExecutor(game, 4, 4, model=ClusterModel(workers_a_machine=2), notice=silent)
    with Session(game, executor, 4, silent) as session:
        report = session.search(SearchRequest("", (), Limits(depth=6)))
    assert report.strategy == "team"
    assert report.overheads.tasks == 2 * (6 + sum(item.researches for item in report.result.iterations))


def test_several_workers_are_teams_wherever_they_are() -> None:
    game = load_game("connect_four")
    for workers_a_machine in (4, 2):
        model = ClusterModel(workers_a_machine=workers_a_machine)
        with Session(game, SimulatedExecutor(game, 4, 4, model=model, notice=silent), 4, silent) as session:
            assert session.search(SearchRequest("", (), Limits(depth=6))).strategy == "team"
    with Session(game, SerialExecutor(game, 1, 4.0, notice=silent), 4, silent) as session:
        assert session.search(SearchRequest("", (), Limits(depth=6))).strategy == "single"
