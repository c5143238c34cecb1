"""Who counts as hung."""

from __future__ import annotations

from cluster.ray_watch import Watch


def test_only_an_unchanged_sign_adds_up() -> None:
    watch = Watch()
    assert [watch.quiet_s("a", 1, float(now)) for now in range(4)] == [0, 1, 2, 3]
    assert watch.quiet_s("a", 2, 4.0) == 0
    assert watch.quiet_s("a", 2, 5.5) == 1.5


def test_each_has_a_clock_of_its_own() -> None:
    watch = Watch()
    watch.quiet_s("a", 1, 0.0)
    watch.quiet_s("b", 1, 1.0)
    assert watch.quiet_s("a", 1, 2.0) == 2
    assert watch.quiet_s("b", 1, 2.0) == 1


def test_who_was_idle_begins_anew() -> None:
    watch = Watch()
    watch.quiet_s("a", 1, 0.0)
    watch.forget("a")
    watch.forget("never seen")
    assert watch.quiet_s("a", 1, 1.0) == 0


def test_a_driver_that_slept_blames_nobody() -> None:
    watch = Watch()
    watch.quiet_s("a", 1, 0.0)
    assert watch.quiet_s("a", 1, 3600.0) <= 2
