#!/usr/bin/env bash
# Runs every drill RUNS times (3) on StoreSvr and on etcd, where that is installed, and writes
# docs/failover.md: what was measured, beside the targets, with the machine. Wants bin/ built, and a machine with nothing else to do.
# With ONLY, a part of the drills' texts, no others are run, and with ENGINE, store or etcd, none on
# the other one: what is not run stays as it was.
# Usage: tests/drills/report.sh [FILE]
set -euo pipefail
cd "$(dirname "$0")/../.."
export LC_ALL=C

runs=${RUNS:-3}
seqctl=${SEQCTL:-bin/seqctl}
only=${ONLY:-}
engine=${ENGINE:-}
etcd=$(command -v etcd || true)
target=${1:-docs/failover.md}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The drills with their flags, each on both engines, or on the one before the colon. Targets and
# what else is wanted of each are in its report.
plan=(
  kill-alloc
  "store: kill-alloc --lease 600ms"
  "store: kill-alloc --supervise"
  pause-alloc
  restart-alloc
  drain-alloc
  kill-store
  kill-two-stores
  "etcd: kill-leader"
  "etcd: pause-leader"
  kill-all
  "store: kill-all --space orders"
  "store: kill-alloc --space orders"
  "store: restart-alloc --space orders"
  "store: drain-alloc --space orders"
  "store: kill-zone"
  "store: kill-set"
  "store: kill-set --set main"
  move-set
  kill-router
  rolling-restart
  partition-alloc
  partition-store
  "etcd: partition-leader"
  one-way
)
# The modes side by side, at a rate that leaves the processors time: what a node's silence says of it
# depends on that.
for name in kill-alloc pause-alloc partition-alloc; do
  for space in "" " --space live:mode=strict --suspect-after 40ms" " --space orders --suspect-after 40ms"; do
    plan+=("store: $name --rate 200$space")
  done
done

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
  echo "| runs of each drill | $runs |"
  echo "| date | $(date -u +%Y-%m-%d) |"
  echo "| version | $("$seqctl" --version) |"
  [[ -z $etcd ]] || echo "| etcd | $(etcd --version | head -1 | cut -d' ' -f3) |"
}

# measure RUN FLAGS runs one drill; the run with the median pause becomes its report.
measure() {
  local name=$1 run
  shift
  for ((run = 1; run <= runs; run++)); do
    if ! "$seqctl" drill "$@" -o json >"$work/$name.$run" 2>"$work/$name.err"; then
      echo "drill $*: $(cat "$work/$name.err")" >&2
      if [[ ! -s $work/$name.$run ]]; then
        rm -f "$work/$name".[0-9]*
        return
      fi
    fi
    echo "$(field max_pause_ms "$work/$name.$run") $work/$name.$run" >>"$work/$name.pauses"
    echo "drill $*, run $run: $(tail -1 "$work/$name.pauses" | cut -d' ' -f1) ms" >&2
  done
  sort -n "$work/$name.pauses" >"$work/$name.sorted"
  cp "$(sed -n "$(((runs + 1) / 2))p" "$work/$name.sorted" | cut -d' ' -f2)" "$work/$name.median"
}

# worst RUN FIELD prints the largest of all runs.
worst() {
  local run
  for run in "$work/$1".[0-9]; do field "$2" "$run"; done | sort -n | tail -1
}

# chosen ENGINE FLAGS says whether a drill is to be measured.
chosen() { [[ $2 == *"$only"* && ($1 == etcd && -n $etcd || $1 == store) && $1 == *"$engine" ]]; }

# cells NUMBER ENGINE FLAGS prints the two cells of an engine: the pause with its target, and what
# was counted. Those of what was not chosen are as they were.
cells() {
  local name=$1-$2 goal count wrong=0 what
  if ! chosen "$2" "$3" && [[ $2 == store || -n $etcd ]]; then
    row "$3" | awk -F' *[|] *' -v at="$([[ $2 == store ]] && echo 3 || echo 5)" 'NF == 8 || NF == 6 && at == 3 { print "| " $at " | " $(at + 1); found = 1 } END { if (!found) print "| – | –" }'
    return
  elif [[ ! -e $work/$name.err ]]; then
    echo "| – | –"
    return
  elif [[ ! -e $work/$name.median ]]; then
    echo "| not run: $(tail -1 "$work/$name.err" | tr '|' '/') | –"
    return
  fi
  for what in duplicates regressions holes two_answers; do # the last two of exact spaces only
    count=$(worst "$name" "$what")
    wrong=$((wrong + ${count:-0}))
  done
  goal=$(field target_ms "$work/$name.median")
  [[ $goal == 0 ]] || goal=" ≤ $goal"
  echo "| $(round "$(field max_pause_ms "$work/$name.median")")" \
    "($(round "$(head -1 "$work/$name.sorted" | cut -d' ' -f1)") – $(round "$(tail -1 "$work/$name.sorted" | cut -d' ' -f1)"))${goal#0}" \
    "| $(worst "$name" errors), $wrong, $(worst "$name" gaps)"
}

# row FLAGS prints a drill's row of the page as it was.
row() { was "| \`$1\` |" | head -1; }

# was prints lines of the page as it was, from PATTERN on up to the next empty one.
was() { awk -v from="$1" 'index($0, from) { on = 1 } on && $0 == "" { exit } on' "$target"; }

machine >"$work/machine"
if [[ -n $only$engine ]]; then
  rows="${only:+rows with \`$only\`}${engine:+${only:+, }on $engine}"
  awk -v rows="$rows" -F' \\| ' '/^\| (load|runs|date|version|etcd)/ { sub(/^\| /, ""); text = text sep $1 " " substr($2, 1, length($2) - 2); sep = ", " }
    END { print "| " rows " | " text " |" }' "$work/machine" >"$work/part"
  was '| CPU' | grep -vF "| $rows |" | cat - "$work/part" >"$work/machine"
fi
for i in "${!plan[@]}"; do
  flags=${plan[$i]#*: }
  for kind in store etcd; do
    # shellcheck disable=SC2086 # flags are words
    ! chosen "$kind" "$flags" || [[ ${plan[$i]} == *:* && ${plan[$i]} != $kind:* ]] || measure "$i-$kind" $flags --engine "$kind"
  done
done

{
  echo "# How long failures are felt"
  echo
  echo "\`make drills\` writes this page. It runs each drill of \`seqctl drill\` on new clusters of real processes, on StoreSvr and on three members"
  echo "of etcd (\`--engine etcd\`). \`seqctl drill --list\` describes the drills; \`seqctl drill kill-alloc\` runs one and prints its events."
  echo "\`--modes --html FILE\` draws an ordinary, a strict and an exact space on one page."
  echo
  echo "| machine | |"
  echo "|---|---|"
  cat "$work/machine"
  echo
  echo "- **Pause**, in ms: the longest call, retries of the SDK included. Median of the runs (least – most), and the target, if any. The lease is"
  echo "  1 s on StoreSvr and 3 s on etcd unless the drill says otherwise."
  echo "- **Errors**: failed calls. **Wrong**: duplicates and regressions over the whole history ([guarantees.md](guarantees.md)); with \`--space\`"
  echo "  (an exact space) holes and second answers too. **Gaps**: numbers that reached no caller. A crash may leave gaps, a planned move may not."
  echo "  All of the worst run. With \`kill-set\` the pause counts callers of the other Set, the errors callers of the killed Set."
  echo "- A dash: StoreSvr has no leader; etcd has neither exact spaces nor supervision ([etcd.md](etcd.md))."
  [[ -n $etcd ]] || echo "- etcd is left out: it is not installed here (apt-get install etcd-server)."
  echo
  echo "| drill | StoreSvr | errors, wrong, gaps | etcd | errors, wrong, gaps | also wanted |"
  echo "|---|---:|---:|---:|---:|---|"
  for i in "${!plan[@]}"; do
    flags=${plan[$i]#*: }
    wanted=$(row "$flags" 2>/dev/null | awk -F' *[|] *' '{ print $(NF - 1) }')
    for name in "$i-store" "$i-etcd"; do
      [[ ! -e $work/$name.median ]] || wanted=$(words wanted "$work/$name.median")
    done
    echo "| \`$flags\` $(cells "$i" store "$flags") $(cells "$i" etcd "$flags") | $wanted |"
  done
} | if [[ -n $etcd ]]; then cat; else sed -E '/^\|( drill |---\|---:|.*`)/s/^(\|[^|]*\|[^|]*\|[^|]*)\|[^|]*\|[^|]*(\|[^|]*\|)$/\1\2/'; fi >"$work/page"
mkdir -p "$(dirname "$target")"
mv "$work/page" "$target"
echo "wrote $target" >&2
