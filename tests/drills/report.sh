#!/usr/bin/env bash
# Runs every drill RUNS times (3) and writes docs/failover.md: what was measured, beside
# the targets, with the machine. Wants bin/ built, and a machine with nothing else to do.
# With ONLY, a part of the drills' texts, no others are run: their rows stay as they were.
# Usage: tests/drills/report.sh [FILE]
set -euo pipefail
cd "$(dirname "$0")/../.."
export LC_ALL=C

runs=${RUNS:-3}
seqctl=${SEQCTL:-bin/seqctl}
only=${ONLY:-}
target=${1:-docs/failover.md}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The drills and their flags. Targets and what else is wanted of each are in its report.
plan=(
  kill-alloc
  "kill-alloc --lease 600ms"
  "kill-alloc --supervise"
  pause-alloc
  restart-alloc
  drain-alloc
  kill-store
  kill-two-stores
  kill-all
  "kill-all --space orders"
  "kill-alloc --space orders"
  "restart-alloc --space orders"
  "drain-alloc --space orders"
  kill-zone
  kill-router
  rolling-restart
  partition-alloc
  partition-store
  one-way
)

# field NAME FILE prints a number of a report, and words NAME FILE a text.
field() { awk -v key="\"$1\":" '$1 == key { sub(/,$/, "", $2); print $2; exit }' "$2"; }
words() { awk -v key="\"$1\":" '$1 == key { sub(/^[^:]*: "/, ""); sub(/",?$/, ""); print; exit }' "$2"; }

# round NUMBER prints it with one digit after the point.
round() { awk -v n="$1" 'BEGIN { printf "%.1f", n }'; }

machine() {
  local cpu disk
  cpu=$(awk -F': *' '/^model name/ { print $2; exit }' /proc/cpuinfo)
  disk=$(df --output=source,fstype "${TMPDIR:-/tmp}" | tail -1 | awk '{ print $1 " (" $2 ")" }')
  echo "| CPU | ${cpu:-$(uname -m)}, $(nproc) cores |"
  echo "| memory | $(awk '/^MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo) |"
  echo "| kernel | $(uname -sr) |"
  echo "| disk of the stores | $disk |"
  echo "| load before | $(cut -d' ' -f1-3 /proc/loadavg) |"
  echo "| date | $(date -u +%Y-%m-%d) |"
  echo "| version | $("$seqctl" --version) |"
}

# measure NUMBER FLAGS runs one drill; the run with the median pause becomes its report.
measure() {
  local number=$1 run
  shift
  for ((run = 1; run <= runs; run++)); do
    if ! "$seqctl" drill "$@" -o json >"$work/$number.$run" 2>"$work/$number.err"; then
      echo "drill $*: $(cat "$work/$number.err")" >&2
      if [[ ! -s $work/$number.$run ]]; then
        rm -f "$work/$number".[0-9]*
        return
      fi
    fi
    echo "$(field max_pause_ms "$work/$number.$run") $work/$number.$run" >>"$work/$number.pauses"
    echo "drill $*, run $run: $(tail -1 "$work/$number.pauses" | cut -d' ' -f1) ms" >&2
  done
  sort -n "$work/$number.pauses" >"$work/$number.sorted"
  cp "$(sed -n "$(((runs + 1) / 2))p" "$work/$number.sorted" | cut -d' ' -f2)" "$work/$number.median"
}

# worst NUMBER FIELD prints the largest of all runs.
worst() {
  local run
  for run in "$work/$1".[0-9]; do field "$2" "$run"; done | sort -n | tail -1
}

# was prints lines of the page as it was, from PATTERN on up to the next empty one.
was() { awk -v from="$1" 'index($0, from) { on = 1 } on && $0 == "" { exit } on' "$target"; }

machine >"$work/machine"
if [[ -n $only ]]; then
  awk -v rows="$only" -F' \\| ' '/load before|date|version/ { sub(/^\| /, ""); text = text sep $1 " " substr($2, 1, length($2) - 2); sep = ", " }
    END { print "| rows with `" rows "` | " text " |" }' "$work/machine" >"$work/part"
  was '| CPU' | grep -vF "| rows with \`$only\`" | cat - "$work/part" >"$work/machine"
fi
for i in "${!plan[@]}"; do
  [[ ${plan[$i]} == *"$only"* ]] || continue
  # shellcheck disable=SC2086 # flags are words
  measure "$i" ${plan[$i]}
done

{
  echo "# How long failures are felt"
  echo
  echo "Written by \`make drills\`: $runs runs of each drill of \`seqctl drill\`, each on a new cluster of real processes."
  echo "\`seqctl drill --list\` says what each does; \`seqctl drill kill-alloc\` runs one and prints what happened when."
  echo
  echo "| machine | |"
  echo "|---|---|"
  cat "$work/machine"
  echo
  echo "- **Longest pause**: from the start of a call to its answer, retries of the SDK included. Median of the runs, least and most;"
  echo "  all other columns have the worst run."
  echo "- **Errors**: calls that failed for their caller. **Wrong**: duplicates and regressions over the whole history"
  echo "  ([guarantees.md](guarantees.md)), with \`--space\` (an exact space) holes and second answers too."
  echo "- **Gaps**: numbers that nobody got. A crash may leave some, a planned move may not."
  echo
  echo "| drill | target, ms | longest pause, ms | errors | wrong | gaps | also wanted |"
  echo "|---|---:|---:|---:|---:|---:|---|"
  for i in "${!plan[@]}"; do
    flags=${plan[$i]}
    if [[ $flags != *"$only"* ]]; then
      was "| \`$flags\` |" | head -1
      continue
    fi
    if [[ ! -e $work/$i.median ]]; then
      echo "| \`$flags\` | | not run: $(tail -1 "$work/$i.err" | tr '|' '/') | | | | |"
      continue
    fi
    goal=$(field target_ms "$work/$i.median")
    [[ $goal == 0 ]] && goal=
    wrong=0
    for what in duplicates regressions holes two_answers; do # the last two of exact spaces only
      count=$(worst "$i" "$what")
      wrong=$((wrong + ${count:-0}))
    done
    echo "| \`$flags\` | ${goal:+≤ $goal} | $(round "$(field max_pause_ms "$work/$i.median")")" \
      "($(round "$(head -1 "$work/$i.sorted" | cut -d' ' -f1)") – $(round "$(tail -1 "$work/$i.sorted" | cut -d' ' -f1)"))" \
      "| $(worst "$i" errors) | $wrong" \
      "| $(worst "$i" gaps) | $(words wanted "$work/$i.median") |"
  done
} >"$work/page"
mkdir -p "$(dirname "$target")"
mv "$work/page" "$target"
echo "wrote $target" >&2
