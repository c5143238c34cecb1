"""Calls that compiled functions make of themselves."""

from __future__ import annotations

import pytest

from tt_store.native import JIT_DISABLED, Word, as_word, entry, helper, self_call


@self_call
def _further(number: int, word: Word) -> int:
    return _summed(number, word)


@helper
def _summed(number: int, word: Word) -> int:
    if number == 0:
        return 0
    return number + _further(number - 1, word)


@entry
def _sum_to(number: int) -> int:
    return _summed(number, as_word(1))


@entry
def _misplaced(number: int) -> int:
    return _further(number, as_word(1))


def test_a_function_calls_itself() -> None:
    assert [_sum_to(number) for number in (0, 1, 2, 100)] == [0, 1, 3, 5050]


@pytest.mark.skipif(JIT_DISABLED, reason="plain Python calls the function that is named")
def test_a_call_in_another_function_than_it_names_is_refused() -> None:
    with pytest.raises(Exception, match=r"_further stands in .*_misplaced.*, not in _summed"):
        _misplaced(3)
