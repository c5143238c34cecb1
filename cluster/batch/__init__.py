"""Many positions, each searched once: readers, planner, runner, writers, resume."""
