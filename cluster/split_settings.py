"""The dynamic splitter's strategy as data, so that an experiment can change it."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class SplitSettings:
    """The numbers of the dynamic splitter; the defaults were measured by simulation."""

    grain_s: float = 0.02
    """A task shorter than this is not split."""
    master_s: float = 0.0003
    """What a task costs the splitter: with many workers tasks must be longer."""
    tasks_per_worker: float = 12.0
    """An iteration should have at least so many tasks a worker, as far as the grain allows."""
    budget_grains: float = 2.0
    """A task ends unfinished after so many grains, and its node is split."""
    trial_share: float = 0.3
    """In a selective search, how much of its estimate a node expected to cut may take before it is split."""
    prefix_s: float = 0.1
    """An iteration expected to be shorter than this is one task."""
    solver_grain_s: float = 0.005
    solver_prefix_s: float = 0.02
    """Instead of the two above in the windows of a solver: most are short, and nothing tells their costs beforehand."""
    least_depth: int = 2
    """Nodes of less depth are never split."""
    least_selective_depth: int = 7
    """Nor are they in a selective search: near the horizon the kernel leaves out more than the splitter knows of."""
    team_size: int = 16
    """Most workers that search one subtree together, all on one machine."""
    team_grain_s: float = 0.08
    """Between teams no task shorter than this is split: at each one's end the members wait for each other."""
    solver_team_grain_s: float = 0.02
    share_nodes: float = 300.0
    selective_share_nodes: float = 3_000.0
    """Workers that search one subtree together look at each other's moves where more nodes than this lie below. In a
    selective search a move that comes later than its turn costs more."""
    follow_s: float = 0.0001
    """What it costs to have one worker follow another for one root search."""
    follow_worth: float = 3.0
    """Workers follow if the root search is expected to take so many times as long as it takes to tell them all."""
    first_follow_s: float = 0.002
    """What a root search before which nothing was searched is expected to take, for that."""
    first_search_nodes: float = 1e6
    """Nodes of a search about whose size nothing is known."""
    collapse_grains: float = 0.7
    """Inner nodes expected to be smaller than this become leaves again at the next iteration."""
    pv_share: float = 0.5
    """Probability of a sibling of an unfinished PV child, relative to its parent's."""
    cut_share: float = 0.3
    cut_decay: float = 0.7
    cut_least: float = 0.02
    """At a node expected to cut, the k-th later child has ``cut_share * cut_decay ** (k - 1)``, down to the least."""
    first_cut_estimate: float = 0.9
    first_pv_estimate: float = 0.5
    """Share of a node's expected cost that its first child is expected to take."""
    prefetch_least: float = 0.5
    """No task less probable than this is queued behind a running one."""
    first_rate: float = 5e6
    """Nodes a second of one worker, until it has been measured."""
    measured_nodes: int = 5_000
    """Tasks of fewer nodes that are short, too, say nothing of a worker's rate."""
    rate_memory_s: float = 10.0
    """Seconds of work after which the rate's past weighs half."""
    first_growth: float = 4.0
    """Growth of an iteration over the last, until it has been measured."""

    def for_solver(self) -> SplitSettings:
        """Return the settings for the windows of a solver."""
        return replace(
            self, grain_s=self.solver_grain_s, prefix_s=self.solver_prefix_s, team_grain_s=self.solver_team_grain_s
        )

    def for_teams(self) -> SplitSettings:
        """Return the settings of what splits a tree between teams."""
        return self if self.team_size == 1 else replace(self, grain_s=max(self.grain_s, self.team_grain_s))

    def on_executor(self, grain_s: float, call_s: float, *, has_teams: bool) -> SplitSettings:
        """Return the settings as an executor can do with them.

        Parameters
        ----------
        grain_s
            Its shortest task.
        call_s
            What a call to a worker costs.
        has_teams
            Whether one worker may follow another.
        """
        return replace(
            self,
            grain_s=max(self.grain_s, grain_s),
            follow_s=max(self.follow_s, call_s),
            team_size=self.team_size if has_teams else 1,
        )
