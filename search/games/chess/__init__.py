"""Chess by the rules of FIDE, Chess960 included; a position is a FEN, a move is written as in UCI."""

from search.games.chess.board import Position, clock, has_pieces
from search.games.chess.evaluation import evaluate, evaluate_with
from search.games.chess.exchange import exchange, exchange_at_least
from search.games.chess.fen import START, mirror, parse, text
from search.games.chess.keys import key
from search.games.chess.legality import in_check, may_check
from search.games.chess.moves import MAX_MOVES, captures, count_moves, moves
from search.games.chess.network import MEMORY_WORDS
from search.games.chess.notation import move_text, parse_move, score_text
from search.games.chess.ordering import HISTORY_SIZE, is_quiet, move_slot, order
from search.games.chess.outcome import outcome, stuck
from search.games.chess.play import pass_turn, play

__all__ = [
    "HISTORY_SIZE",
    "MAX_MOVES",
    "MEMORY_WORDS",
    "START",
    "Position",
    "captures",
    "clock",
    "count_moves",
    "evaluate",
    "evaluate_with",
    "exchange",
    "exchange_at_least",
    "has_pieces",
    "in_check",
    "is_quiet",
    "key",
    "may_check",
    "mirror",
    "move_slot",
    "move_text",
    "moves",
    "order",
    "outcome",
    "parse",
    "parse_move",
    "pass_turn",
    "play",
    "score_text",
    "stuck",
    "text",
]
