"""A sweep as one HTML page that needs nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from html import escape
from typing import Any

from .journal import Line
from .markdown import counts_text, share_text
from .results import NOT_ENDED, Results, at_share, median
from .runner import GOOD, size_text

#: Rows of jobs that a browser shows at once without effort.
_MOST_ROWS = 5000
_MOST_SLOW = 10

_STYLE = """
:root { --paper: #fff; --ink: #1b1f24; --quiet: #667; --line: #d8dde3; --good: 140; --bad: 8; --light: 82%; color-scheme: light dark; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171b; --ink: #e6e9ed; --quiet: #99a; --line: #343a42; --light: 28%; } }
body { background: var(--paper); color: var(--ink); font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.1rem; margin: 2rem 0 .6rem; }
p, .quiet { color: var(--quiet); } .scroll { overflow-x: auto; }
table { border-collapse: collapse; } th, td { padding: .25rem .6rem; text-align: left; vertical-align: top; }
thead th { border-bottom: 1px solid var(--line); font-weight: 600; } td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
.heat td { border: 2px solid var(--paper); min-width: 4.5rem; text-align: center; font-variant-numeric: tabular-nums; }
.heat td[data-share] { background: hsl(calc(var(--bad) + (var(--good) - var(--bad)) * var(--share)) 55% var(--light)); cursor: pointer; }
.heat td.none { background: repeating-linear-gradient(45deg, transparent 0 4px, var(--line) 4px 5px); }
.chosen { outline: 2px solid var(--ink); outline-offset: -3px; }
.bar { background: hsl(212 60% 55%); display: inline-block; height: .6rem; border-radius: 2px; margin-right: .4rem; }
.bars, .status, td.number { white-space: nowrap; } .status::before { content: "● "; } .good::before { color: hsl(140 55% 42%); } .bad::before { color: hsl(8 70% 52%); }
.open::before { color: var(--quiet); } input { font: inherit; padding: .25rem .5rem; width: 22rem; max-width: 100%; }
"""

_SCRIPT = """
const rows = [...document.querySelectorAll('#jobs tbody tr')], field = document.getElementById('filter');
let chosen = null;
function show() {
  const words = field.value.toLowerCase().split(/\\s+/).filter(Boolean);
  let count = 0;
  for (const row of rows) {
    const fits = words.every(word => row.textContent.toLowerCase().includes(word)) &&
      (!chosen || (row.dataset.family === chosen.dataset.family && row.dataset.target === chosen.dataset.target));
    row.hidden = !fits;
    count += fits;
  }
  document.getElementById('shown').textContent = count + ' of ' + rows.length;
}
for (const cell of document.querySelectorAll('td[data-share]')) cell.addEventListener('click', () => {
  if (chosen) chosen.classList.remove('chosen');
  chosen = chosen === cell ? null : cell;
  if (chosen) chosen.classList.add('chosen');
  show();
});
field.addEventListener('input', show);
show();
"""


def sweep_page(results: Results, title: str = "Sweep") -> str:
    parts = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{len(results.lines)} jobs: {escape(counts_text(results))}. {_total_text(results)}</p>",
        *_heat_map(results),
        *_changes(results),
        *_reasons(results),
        *_costs(results),
        *_slowest(results),
        *_jobs(results),
    ]
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    body = "\n".join(parts)
    return f'<!doctype html>\n<html lang="en"><head>{head}<style>{_STYLE}</style></head>\n<body>\n{body}\n<script>{_SCRIPT}</script>\n</body></html>\n'


def _total_text(results: Results) -> str:
    cpu = sum(float(line.get("cpu_seconds", 0)) for line in results.lines)
    return f"All together {escape(_time(cpu))} of CPU; at most {size_text(_most(results.lines, 'peak_bytes'))} of memory for one."


def _heat_map(results: Results) -> Iterable[str]:
    targets = results.targets()
    yield '<h2>Families by target</h2><p>Jobs that ended well, of all. A click shows the jobs of a cell below.</p><div class="scroll"><table class="heat"><thead><tr><th>family</th>'
    yield "".join(f"<th>{escape(target)}</th>" for target in targets) + "</tr></thead><tbody>"
    for family, cells in results.cells().items():
        row = "".join(_heat(family, target, cells.get(target)) for target in targets)
        yield f"<tr><th>{escape(family)}</th>{row}</tr>"
    yield "</tbody></table></div>"


def _heat(family: str, target: str, lines: list[Line] | None) -> str:
    if not lines:
        return '<td class="none"></td>'
    share = sum(line["status"] in GOOD for line in lines) / len(lines)
    statuses = ", ".join(f"{count} {status}" for status, count in sorted(Counter(line["status"] for line in lines).items()))
    seconds = median([line["seconds"] for line in lines if "seconds" in line])
    told = f"{statuses}; half of them within {_time(seconds)}, at most {size_text(_most(lines, 'peak_bytes'))}"
    what = f'data-share="{share:.3f}" style="--share:{share:.3f}" data-family="{escape(family)}" data-target="{escape(target)}"'
    return f'<td {what} title="{escape(told)}">{share_text(lines)}</td>'


def _changes(results: Results) -> Iterable[str]:
    if not results.before:
        return
    changes = results.changes()
    better = [pair for pair in changes if pair[1]["status"] in GOOD and pair[0]["status"] not in GOOD]
    worse = [pair for pair in changes if pair[1]["status"] not in GOOD and pair[0]["status"] in GOOD]
    yield f"<h2>Since the last run</h2><p>{len(better)} better, {len(worse)} worse, {len(changes) - len(better) - len(worse)} otherwise different. {_time_change(results)}</p>"
    if changes:
        rows = ([new["name"], new["target"], _status(old), _status(new), new.get("reason", "")] for old, new in [*worse, *(pair for pair in changes if pair not in worse)])  # fmt: skip
        yield _table(["job", "target", "then", "now", "reason"], rows)


def _time_change(results: Results) -> str:
    pairs = [(results.before.get(line["job"]), line) for line in results.lines]
    both = [(old, new) for old, new in pairs if old and old["status"] in GOOD and new["status"] in GOOD and "seconds" in old]
    then, now = (sum(float(pair[i]["seconds"]) for pair in both) for i in (0, 1))
    return f"The {len(both)} jobs that ended well both times took {_time(then)} then and {_time(now)} now." if both else ""


def _reasons(results: Results) -> Iterable[str]:
    reasons = results.reasons()
    if not reasons:
        return
    yield "<h2>Reasons</h2>"
    most = len(reasons[0][1])
    rows = ([_Bar(len(found), len(found) / most), reason, ", ".join(dict.fromkeys(line["name"] for line in found[:3])) + (" …" if len(found) > 3 else "")] for reason, found in reasons)  # fmt: skip
    yield _table(["jobs", "how and why", "such as"], rows)


def _costs(results: Results) -> Iterable[str]:
    yield "<h2>Time and memory</h2>"
    rows = []
    ran = [line for line in results.lines if "seconds" in line]
    longest = max([at_share(_of(ran, target, "seconds"), 0.95) for target in results.targets()], default=0) or 1
    for target in results.targets():
        seconds, memory = _of(ran, target, "seconds"), _of(ran, target, "peak_bytes")
        late = at_share(seconds, 0.95)
        rows.append([target, _Number(len(seconds)), _Number(_time(median(seconds))), _Bar(_time(late), late / longest), _Number(_time(max(seconds, default=0))),
                     _Number(_time(sum(_of(ran, target, "cpu_seconds")))), _Number(size_text(median(memory))), _Number(size_text(max(memory, default=0)))])  # fmt: skip
    yield _table(["target", "jobs", "half within", "95 of 100 within", "longest", "CPU, all", "memory, half within", "memory, most"], rows)


def _slowest(results: Results) -> Iterable[str]:
    ran = sorted((line for line in results.lines if "seconds" in line), key=lambda line: -float(line["seconds"]))[:_MOST_SLOW]
    yield "<h2>What took longest</h2>"
    yield _table(["job", "target", "time", "CPU", "memory", "disk"], (
        [line["name"], line["target"], _Bar(_time(line["seconds"]), line["seconds"] / (ran[0]["seconds"] or 1)), _Number(_time(line["cpu_seconds"])),
         _Number(size_text(line["peak_bytes"])), _Number(size_text(line["disk_bytes"]))] for line in ran))  # fmt: skip


def _jobs(results: Results) -> Iterable[str]:
    shown = results.lines if len(results.lines) <= _MOST_ROWS else results.bad()[:_MOST_ROWS]
    what = "" if len(shown) == len(results.lines) else f"<p>The page has {len(shown)} that did not end well; all are in results.jsonl.</p>"
    yield f'<h2>Jobs</h2>{what}<p><input id="filter" placeholder="words that a row has" aria-label="words that a row has"> <span id="shown"></span></p>'
    yield '<div class="scroll"><table id="jobs"><thead><tr><th>job</th><th>family</th><th>target</th><th>task</th><th>ended</th><th class="number">time</th><th class="number">memory</th><th>reason</th></tr></thead><tbody>'
    for line in shown:
        took = _time(line["seconds"]) if "seconds" in line else ""
        memory = size_text(line["peak_bytes"]) if "peak_bytes" in line else ""
        cells = [line["name"], line["family"], line["target"], line.get("task", ""), _status(line), _Number(took), _Number(memory), line.get("reason", "")]
        yield f'<tr data-family="{escape(line["family"])}" data-target="{escape(line["target"])}">{"".join(map(_cell, cells))}</tr>'
    yield "</tbody></table></div>"


class _Html(str):
    """Text that is HTML already."""


class _Number(str):
    """What stands at the right of its column."""

    def __new__(cls, value: Any) -> _Number:
        return super().__new__(cls, str(value))


def _Bar(text: Any, share: float) -> _Html:
    return _Html(f'<span class="bars"><span class="bar" style="width:{max(0.0, min(1.0, share)) * 8:.2f}rem"></span>{escape(str(text))}</span>')


def _status(line: Line) -> _Html:
    kind = "good" if line["status"] in GOOD else "open" if line["status"] == NOT_ENDED else "bad"
    return _Html(f'<span class="status {kind}">{escape(line["status"])}</span>')


def _table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(value: Any) -> str:
    if isinstance(value, _Html):
        return f"<td>{value}</td>"
    return f'<td{" class=number" if isinstance(value, _Number) else ""}>{escape(str(value))}</td>'


def _of(lines: list[Line], target: str, name: str) -> list[float]:
    return [float(line[name]) for line in lines if line["target"] == target]


def _most(lines: list[Line], name: str) -> float:
    return max((float(line.get(name, 0)) for line in lines), default=0.0)


def _time(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
