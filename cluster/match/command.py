"""`rootsplit match`: parses, plays, prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from cluster.match.tournament import Standing


def match(
    first: Annotated[
        str,
        typer.Argument(
            help="An engine: rootsplit or a command, then UCI options and limits: 'stockfish;UCI_Elo=2000;nodes=5000'."
        ),
    ],
    second: Annotated[str, typer.Argument(help="The other engine.")],
    games: Annotated[int, typer.Option(help="An even number: each opening is played with both colours.")] = 100,
    clock: Annotated[str | None, typer.Option(help="Seconds and increment, such as 10+0.1.")] = None,
    openings: Annotated[Path | None, typer.Option(help="PGN, EPD or FEN; a small set of our own without.")] = None,
    plies: Annotated[int, typer.Option(help="How much of each game of a PGN is the opening.")] = 8,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="PGN of all games; the same command goes on from it.")
    ] = None,
    concurrency: Annotated[int, typer.Option(help="Games at a time.")] = 1,
    sprt: Annotated[
        tuple[float, float] | None, typer.Option(help="End when these two differences of Elo are told apart.")
    ] = None,
    draw_moves: Annotated[int, typer.Option(help="Draw after so many even moves of both; 0: never.")] = 0,
    draw_score: Annotated[int, typer.Option(help="What is even, in centipawns.")] = 10,
    resign_moves: Annotated[int, typer.Option(help="Resign after so many hopeless moves; 0: never.")] = 0,
    resign_score: Annotated[int, typer.Option(help="What is hopeless, in centipawns.")] = 900,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")] = False,
) -> None:
    """Play two chess engines against each other, and say which is stronger, with a 95 % interval."""
    from cluster.match.contestants import Contestant, TimeControl
    from cluster.match.game import Adjudication
    from cluster.match.openings import read_openings, usual_openings
    from cluster.match.progress import MatchProgress
    from cluster.match.tournament import MatchPlan, play_match

    plan = MatchPlan(
        Contestant.parse(first),
        Contestant.parse(second),
        usual_openings() if openings is None else read_openings(openings, plies),
        games,
        None if clock is None else TimeControl.parse(clock),
        Adjudication(draw_moves, draw_score, resign_moves, resign_score),
        concurrency,
        sprt,
    )
    with MatchProgress(games) as progress:
        standing = play_match(plan, output, progress.on_game)
    if as_json:
        print(json.dumps(standing.as_json(), ensure_ascii=False))
    else:
        _print_standing(standing)


def _print_standing(standing: Standing) -> None:
    wins, draws, losses = standing.counts
    found = standing.as_json()
    print(f"{found['first']} against {found['second']}: {found['games']} games, +{wins} ={draws} -{losses}")
    strength, verdict = standing.rating, standing.verdict
    if strength is not None:
        print(
            f"score {found['score']:.1%}, Elo {strength.elo:+.0f} (95 %: {strength.low:+.0f} to {strength.high:+.0f})"
        )
        print(f"pairs by the first engine's points 0, 0.5, 1, 1.5, 2: {found['pentanomial']}")
    if verdict is not None:
        print(
            f"sequential test {verdict.text}: log-likelihood ratio {verdict.log_likelihood_ratio:.2f}"
            f" in {verdict.lower:.2f} to {verdict.upper:.2f}"
        )
    for kind in ("time_losses", "crashes", "illegal_moves"):
        if any(found[kind]):
            print(f"{kind.replace('_', ' ')}: {found[kind][0]} of the first engine, {found[kind][1]} of the second")
