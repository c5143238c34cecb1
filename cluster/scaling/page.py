"""What stands where on the page of a report, and what it tells a reader who knows nothing of the program."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from cluster.scaling import html
from cluster.scaling.anchors import ANCHORS
from cluster.scaling.presets import PRESETS
from cluster.scaling.tables import (
    decomposition_table,
    effort_table,
    headline,
    problem_table,
    speedup_table,
    validation_table,
)
from cluster.split_settings import SplitSettings

if TYPE_CHECKING:
    from cluster.scaling.report import Report

_METHOD = (
    (
        "Configurations",
        "single: one worker, no splitting. dynamic: splits wherever work is wanted, at any depth. team: up to 16"
        " workers of a machine search one tree together and share what they find by the table; teams split it like"
        " dynamic. root: shares out the root's moves."
        " threads are those of one process; local is a private Ray on this machine; simulated threads, or simulated"
        " local, are a cluster in virtual time whose messages cost what they cost there.",
    ),
    (
        "Baseline",
        "The sequential search on one worker (strategy single): the same kernel, without the code that splits. Every"
        " speed-up is against it, and its time stands beside each.",
    ),
    (
        "Order of runs",
        "Randomised blocks: in each repeat the problems come in random order, and all configurations search a problem"
        " one right after the other, in random order. The table is emptied before each run unless said otherwise; its"
        " memory has been touched before, for which a new process pays some hundredths of a second once.",
    ),
    ("Repeats", "Of the repeats of a run the one of median time is used (of an even number, the lower of the middle)."),
    (
        "Speed-up",
        "Total sequential time over total time of the configuration: long problems weigh more. The geometric mean"
        " weighs each problem the same. In brackets: 95 % intervals by the bootstrap over problems (10,000 draws):"
        " what other positions of the same kind would give.",
    ),
    ("Efficiency", "Speed-up divided by the number of workers."),
    ("Exponent", "log(speed-up) / log(workers): 1 is ideal, 0.5 means that four times the workers double the speed."),
    (
        "Limit",
        "What the machine allows: as many independent sequential searches at once as there are workers, their nodes a"
        " second together over those of one alone. Shared caches, memory and clocks make it less than the number of"
        " workers; no splitter can beat it but by searching fewer nodes.",
    ),
    (
        "Simulated",
        "The same splitter and the same searches in virtual time, with the latency, the splitter's own time and the"
        " node rate that were measured in this very experiment. Its speed-ups are over the sequential search at the"
        " simulated workers' node rate.",
    ),
)


def compose(report: Report, drawings: list[tuple[str, str, str]]) -> str:
    """Return the page.

    Parameters
    ----------
    report
        What it says.
    drawings
        Its plots: of each the short name, the SVG and the caption.
    """
    design, rows = report.design, report.rows
    session = report.results.sessions[-1]
    by_name = {name: (name, svg, caption) for name, svg, caption in drawings}
    simulated = [row for row in rows if row.is_simulated]
    parts = [
        html.paragraph(
            f"{PRESETS[design.preset].capitalize()}. {len(design.positions)} positions, {design.repeats} repeat(s),"
            f" {session['processor']}, {session['cores']} cores, {session['begun'][:10]}.",
            "pale",
        ),
        html.items(headline(rows), "lead"),
        html.paragraph(report.agreement()),
    ]
    if report.warnings:
        parts.append(
            html.box([html.paragraph("Before you believe the figures:"), html.items(report.warnings)], "warning")
        )
    parts += [html.heading("How much faster"), html.table(speedup_table(rows, simulated=False))]
    parts.append(html.plots(by_name[name] for name in ("speedup", "efficiency") if name in by_name))
    if (taken := decomposition_table(rows)).rows:
        parts += [html.heading("Where the time went"), html.table(taken)]
    wanted = ("overheads", "timeline", "iterations", "durations", "speedup-over-time", "tables", "settings")
    parts.append(html.plots(by_name[name] for name in wanted if name in by_name))
    parts.append(html.table(effort_table(rows)))
    if simulated:
        parts.append(
            html.box(
                [
                    html.heading("Simulated clusters"),
                    html.paragraph(_simulation_text(report)),
                    html.table(speedup_table(rows, simulated=True)),
                    html.table(validation_table(report.validations)),
                ],
                "simulated",
            )
        )
    if (positions := problem_table(rows)).rows:
        parts += [html.heading("The positions"), html.table(positions)]
    parts += [html.heading("How it was measured"), html.terms(_METHOD), *_setup(report)]
    if any(row.configuration.workers > 2 for row in rows):
        parts += [html.heading("Published figures in the plot"), html.items(_anchor_texts())]
    return html.page(f"How the search of {design.game} scales with more workers", parts)


def _simulation_text(report: Report) -> str:
    costs = list(report.results.costs.values())
    measured = "; ".join(
        f"{item.address}: latency {item.latency_s * 1e3:.2f} ms one way, {item.master_s * 1e3:.3f} ms of the master for"
        f" each call and each answer, tasks of {item.least_grain_s * 1e3:g} ms or more"
        for item in costs
    )
    rates = [use.model.node_rate for use in report.results.models if not use.is_validation]
    splitter = [use.model.event_s for use in report.results.models if not use.is_validation]
    text = f"No such cluster was there: these times are virtual. Measured here and used for it: {measured}"
    if rates:
        text += (
            f"; {min(rates) / 1e6:.2f} to {max(rates) / 1e6:.2f} M nodes/s a worker, {max(splitter) * 1e6:.0f} µs of"
            " the splitter for each task and each result"
        )
    text += f"; {report.design.workers_a_machine} workers a machine unless the table says otherwise."
    if report.design.stretch != 1.0:
        text += (
            f" Each node took {report.design.stretch:g} times as long as measured: the same trees as if their problems"
            " were so many times longer."
        )
    return text


def _setup(report: Report) -> list[str]:
    design, session = report.design, report.results.sessions[-1]
    begun = (f"{item['begun']} (load average {item['load_average']:.2f})" for item in report.results.sessions)
    machine = (session["processor"], f"{session['cores']} cores", f"{session['memory_gb']} GB free", session["system"])
    sizes = ", ".join(f"{size:g}" for size in design.tables_mb)
    exact = "exact-depth mode: a wrong value ends the experiment"
    options = [
        ("Machine", ", ".join(machine)),
        ("Versions", ", ".join(f"{name} {version}" for name, version in session["versions"].items())),
        ("Commit", session["commit"] or "not run from a checkout"),
        ("Started", "; ".join(begun)),
        ("Tables", f"{sizes} MB a machine, {'cold' if design.is_cold else 'warm'}"),
        ("Values", exact if design.exact_depth else "as the search gives them"),
        ("Idle cores", "kept busy by filler load" if design.filler else "left idle"),
        ("Seed of the order", str(design.seed)),
    ]
    texts = [f"{name}: {_settings_text(settings)}" for name, settings in design.settings]
    return [
        html.heading("To run it again"),
        html.block(f"cd {session['folder']}\n{session['command']}"),
        html.terms([*options, ("Settings of the splitter", "; ".join(texts))]),
    ]


def _settings_text(settings: SplitSettings) -> str:
    standard = SplitSettings()
    changed = [
        field.name for field in fields(settings) if getattr(settings, field.name) != getattr(standard, field.name)
    ]
    names = changed or [field.name for field in fields(settings)]
    return ", ".join(f"{name} {getattr(settings, name):g}" for name in names)


def _anchor_texts() -> list[str]:
    return [
        f"{anchor.name}: {anchor.low:g}{'' if anchor.low == anchor.high else f' to {anchor.high:g}'} with"
        f" {anchor.workers} workers. {anchor.source}."
        for anchor in ANCHORS
    ]
