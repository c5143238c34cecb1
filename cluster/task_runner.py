"""What a worker does with a task: search it; for a team lead the search, or follow.

The members of a team search one task side by side (`search.sharing`). The leader gets it from the splitter and writes
it on its team's board in the machine's control words; the others follow: they take up whatever is written there, so
that no message need reach them. Who is through first ends the others by the task's cell; a follower that is first
writes its answer on a second board, and the leader returns it as its own. What is lost on the way costs time only.
"""

from __future__ import annotations

import time

from cluster.records import RecordError, Task, TaskResult, pack_results, pack_tasks, unpack_results, unpack_tasks
from search import workspace as at
from search.boards import MOST_BYTES, Board
from search.controls import Controls
from search.searcher import Job
from search.searchers import AnySearcher
from search.statistics import Statistics

_SHORTEST_WAIT_S = 0.00005
_LONGEST_WAIT_S = 0.001
_PATIENCE = 0.05
"""A follower looks at its board again after this share of the time that it has been waiting."""

_TRIES = 20
"""How often a board is read or written anew that another one has written at the same moment."""


def run_task(searcher: AnySearcher, task: Task) -> TaskResult:
    """Run one task on a searcher: what every real worker does."""
    if task.follows:
        return _follow(searcher, task)
    return _lead(searcher, task) if task.board else search_task(searcher, task)


def search_task(searcher: AnySearcher, task: Task, own_task_id: int = 0) -> TaskResult:
    """Search a task alone.

    Parameters
    ----------
    searcher
        Whose kernel to use.
    task
        Which, whatever its board.
    own_task_id
        Of a follower: a second task whose abort ends the search; 0 for none.
    """
    started_s = time.perf_counter()
    job = Job(
        position=searcher.game.position(task.position),
        depth=task.depth,
        alpha=task.alpha,
        beta=task.beta,
        ply=task.ply,
        side=task.side,
        node_limit=task.node_limit,
        task_id=task.task_id,
        epoch=task.epoch,
        contempt=task.contempt,
        salt=task.salt,
        history=task.history,
        left_out=task.left_out,
        settings=task.settings,
        share_depth=task.share_depth,
        own_task_id=own_task_id,
    )
    outcome = searcher.run(job)
    return TaskResult(
        task_id=task.task_id,
        epoch=task.epoch,
        score=outcome.score,
        alpha=outcome.alpha,
        beta=outcome.beta,
        status=outcome.status,
        line=outcome.line,
        statistics=outcome.statistics,
        elapsed_s=time.perf_counter() - started_s,
        best_move=outcome.best_move,
        values=outcome.values,
    )


def answered(result: TaskResult, answer: TaskResult) -> TaskResult:
    """Return a follower's answer as that of the leader, whose own work it was that ended with a result."""
    return answer._replace(statistics=result.statistics, elapsed_s=result.elapsed_s)


def followed(task: Task, status: int, statistics: Statistics, busy_s: float) -> TaskResult:
    """Return what came of following: no score, but what it has cost."""
    return TaskResult(task.task_id, task.epoch, 0, task.alpha, task.beta, status, (), statistics, busy_s)


def following_status(controls: Controls, task: Task, nodes: int) -> int:
    """Return the status of a task that follows others, as a kernel would: `RUNNING` if it goes on.

    Parameters
    ----------
    controls
        The machine's control words.
    task
        That tells whose to take up.
    nodes
        Spent on it so far.
    """
    if controls.is_stopped(task.epoch):
        return at.STOPPED
    if controls.is_aborted(task.task_id):
        return at.ABORTED
    return at.RUNNING if nodes < task.node_limit else at.OUT_OF_NODES


def taken_up(task: Task, led: Task | None, last_id: int, nodes: int) -> Task | None:
    """Return a leader's task as a follower searches it; None if it is of another epoch, or the last one still.

    Parameters
    ----------
    task, nodes
        As for `following_status`.
    led
        What the leader is at, if anything.
    last_id
        Number of the task that the follower took up last, 0 if none.
    """
    if led is None or led.epoch != task.epoch or led.task_id == last_id:
        return None
    return led._replace(node_limit=min(led.node_limit, task.node_limit - nodes))


def _lead(searcher: AnySearcher, task: Task) -> TaskResult:
    """Search a task with whoever follows its board."""
    controls, text = searcher.controls, pack_tasks([task])
    if len(text) > MOST_BYTES:
        # A game with a very long position: its followers stay idle.
        return search_task(searcher, task)
    controls.task_board(task.board).write(task.task_id, text)
    result = search_task(searcher, task)
    # Race: a follower may end at this moment too, and its answer is not looked at; both are right.
    controls.abort(task.task_id)
    answer = None if result.status != at.ABORTED else _answer_to(task, controls.answer_board(task.board))
    return result if answer is None else answered(result, answer)


def _answer_to(task: Task, board: Board) -> TaskResult | None:
    """Return a follower's answer to a task; None if it was the splitter that ended it."""
    # Race: a second follower may be writing over the first one's answer; either will do.
    for _ in range(_TRIES):
        if board.number != task.task_id:
            return None
        written = board.read()
        if written is not None and written[0] == task.task_id:
            return _read_answer(task, written[1])
        time.sleep(_SHORTEST_WAIT_S)
    return None


def _read_answer(task: Task, text: bytes) -> TaskResult | None:
    """Return the answer that a text is, None if it is none to this task."""
    try:
        (answer,) = unpack_results(text)
    except (RecordError, ValueError):
        # No answer of ours, whatever wrote it: the task is handed out again.
        return None
    return answer if (answer.task_id, answer.epoch) == (task.task_id, task.epoch) else None


def _follow(searcher: AnySearcher, task: Task) -> TaskResult:
    """Search what is written on a board, one task after the other, until the epoch ends or this worker is recalled."""
    controls = searcher.controls
    tasks, answers = controls.task_board(task.board), controls.answer_board(task.board)
    statistics, busy_s, last_id, waiting_since_s = Statistics(), 0.0, 0, time.perf_counter()
    while (status := following_status(controls, task, statistics.nodes)) == at.RUNNING:
        # A look at the number alone costs little; it is 0 before the first task.
        is_new = tasks.number not in (0, last_id)
        led = taken_up(task, _led_task(tasks), last_id, statistics.nodes) if is_new else None
        if led is None:
            waited_s = time.perf_counter() - waiting_since_s
            controls.show_progress(searcher.slot, int(waited_s * 1e6))
            time.sleep(min(_LONGEST_WAIT_S, max(_SHORTEST_WAIT_S, _PATIENCE * waited_s)))
            continue
        last_id = led.task_id
        result = search_task(searcher, led, task.task_id)
        statistics, busy_s = statistics.merged(result.statistics), busy_s + result.elapsed_s
        text = pack_results([result])
        if result.is_finished and len(text) <= MOST_BYTES and not controls.is_aborted(led.task_id):
            _give_answer(answers, led.task_id, text)
            controls.abort(led.task_id)
        waiting_since_s = time.perf_counter()
    return followed(task, status, statistics, busy_s)


def _give_answer(board: Board, task_id: int, text: bytes) -> None:
    """Write an answer so that it, or another follower's to the same task, can be read."""
    for _ in range(_TRIES):
        board.write(task_id, text)
        # Race: two followers that end at once may mix up their texts, which fails the checksum; both write again.
        written = board.read()
        if written is not None and written[0] == task_id:
            return


def _led_task(board: Board) -> Task | None:
    """Return the task on a board, None if there is none."""
    written = board.read()
    if written is None:
        return None
    try:
        (task,) = unpack_tasks(written[1])
    except (RecordError, ValueError):
        # Not a task of ours, whatever wrote it: nobody follows it.
        return None
    return task if task.task_id == written[0] else None
