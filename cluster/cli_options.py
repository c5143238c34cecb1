"""Words that several commands understand alike."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

GameArgument = Annotated[str, typer.Argument(help="A game's name (see `rootsplit games`) or the path of its .py file.")]
AddressOption = Annotated[
    str | None,
    typer.Option(help="Run on Ray: local (a private one), auto or host:port; threads of this process if left out."),
]
TableDirOption = Annotated[
    Path | None, typer.Option(help="Where Ray's workers keep the table, best a file system in memory.")
]
HangAfterOption = Annotated[
    float, typer.Option(help="Seconds without progress after which a busy worker on Ray is replaced.")
]
AlgorithmOption = Annotated[
    str | None,
    typer.Option(help="alpha-beta, expectiminimax, max^n, paranoid or mcts; what suits the game if left out."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
