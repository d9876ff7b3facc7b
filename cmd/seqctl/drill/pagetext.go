package drill

// pageText is the page of --html: no script, nothing from elsewhere.
const pageText = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>drill {{.First.Drill}}</title>
<style>
:root { color-scheme: light dark; --ink: #1c2430; --dim: #7a8494; --paper: #fff; --line: #e3e7ec; --known: #2f6fd6; --new: #2a9d6f; --bad: #d33b3b; --mark: #c07a12 }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaf0; --dim: #8d97a6; --paper: #14181e; --line: #2a313b; --known: #6ea2f5; --new: #55c798; --bad: #ff6b6b; --mark: #e0a03c } }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 1160px; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem; margin: 0 } h1.bad { color: var(--bad) } p { color: var(--dim); margin: .2rem 0 1rem } h2 { font-size: 1.1rem; margin: 1.6rem 0 .4rem }
.verdict { display: flex; flex-wrap: wrap; gap: .6rem; margin: 1rem 0 } .verdict div { border: 1px solid var(--line); border-radius: 8px; padding: .5rem .9rem }
.verdict b { display: block; font-size: 1.25rem; font-variant-numeric: tabular-nums } .verdict span { color: var(--dim); font-size: .85rem } .bad b { color: var(--bad) }
svg { width: 100%; height: auto } svg text { font: 11px system-ui, sans-serif; fill: var(--dim) }
.grid { stroke: var(--line) } .mark { stroke: var(--mark); stroke-dasharray: 3 3 } .fault { stroke: var(--bad); stroke-dasharray: none } svg .number { fill: var(--mark); font-weight: 600 }
.dots { fill: none; stroke-width: 2.4; stroke-linecap: round; opacity: .55 } .known { stroke: var(--known) } .new { stroke: var(--new) } .failed { stroke: var(--bad); opacity: 1; stroke-width: 4 }
.bars { stroke: var(--known); stroke-width: 3; fill: none; opacity: .7 }
table { border-collapse: collapse; width: 100% } td, th { text-align: left; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid var(--line); vertical-align: top }
td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap } i { font-style: normal } i.known { color: var(--known) } i.new { color: var(--new) } i.failed { color: var(--bad) }
</style></head><body>
{{if .Several}}<h1>drill {{.First.Drill}} in {{len .}} modes</h1>
<table><tr><th>mode</th><th>longest pause</th><th>before the fault</th><th>errors</th><th>numbers left out</th><th></th></tr>
{{range .}}<tr><td>{{.Mode}}</td><td class="n">{{printf "%.1f" .MaxPauseMS}} ms</td><td class="n">{{printf "%.1f" .SteadyMS}} ms</td><td class="n">{{.Errors}}</td><td class="n">{{.Gaps}}</td><td>{{.Verdict.Text}}</td></tr>
{{end}}</table>
{{end}}{{range .}}
<h1{{if .Verdict.Bad}} class="bad"{{end}}>{{if $.Several}}{{.Mode}}{{else}}drill {{.Drill}}{{end}}: {{.Verdict.Text}}</h1>
<p>{{.Kept}}, {{.Allocs}} allocators, {{.Routers}} routers, lease {{.LeaseMS}} ms{{if .Supervise}}, supervised{{end}}; {{.Rate}} calls a second for {{printf "%.1f" .Seconds}} s</p>
<div class="verdict">
<div><b>{{.Requests}}</b><span>requests</span></div>
<div{{if .Errors}} class="bad"{{end}}><b>{{.Errors}}</b><span>errors</span></div>
<div><b>{{printf "%.1f" .MaxPauseMS}} ms</b><span>longest pause of any UID</span></div>
<div><b>{{printf "%.1f" .SteadyMS}} ms</b><span>longest call before the fault</span></div>
<div{{if .Duplicates}} class="bad"{{end}}><b>{{.Duplicates}}</b><span>duplicates</span></div>
<div{{if .Regressions}} class="bad"{{end}}><b>{{.Regressions}}</b><span>regressions</span></div>
<div><b>{{.Gaps}}</b><span>numbers left out, at most {{.LongestGap}} in a row</span></div>
</div>
<svg viewBox="0 0 {{.Width}} 540" role="img" aria-label="answers over time">
{{range .Rows}}<path class="grid" d="M64 {{.At}}H1100"/><text x="58" y="{{.At}}" dy="4" text-anchor="end">{{.Text}}</text>
{{end}}{{range .Ticks}}<path class="grid" d="M{{.At}} 64V364M{{.At}} 404V504"/><text x="{{.At}}" y="520" text-anchor="middle">{{.Text}}</text>
{{end}}<path class="dots known" d="{{.Known}}"/><path class="dots new" d="{{.New}}"/><path class="dots failed" d="{{.Fail}}"/>
<path class="bars" d="{{.Bars}}"/>
<text x="64" y="396">answers in 50 ms, the highest bar is {{.PeakRate}} a second</text><text x="1100" y="536" text-anchor="end">seconds after the first fault</text>
{{range .Marks}}<path class="mark {{.Event}}" d="M{{.X}} {{.LY}}V504"/>{{if .Label}}<text class="number" x="{{.LX}}" y="{{.LY}}">{{.Label}}</text>{{end}}
{{end}}</svg>
<p>One point a call, by when it was answered and how long it took: <i class="known">known UIDs</i>, <i class="new">UIDs never called before</i>, <i class="failed">errors</i>.</p>
<h2>Timeline</h2>
<table><tr><th></th><th>ms</th><th>event</th><th>node</th><th>detail</th></tr>
{{range $i, $m := .Timeline}}<tr><td class="n">{{inc $i}}</td><td class="n">{{printf "%.1f" $m.MS}}</td><td>{{$m.Event}}</td><td>{{$m.Subject}}</td><td>{{$m.Detail}}</td></tr>
{{end}}</table>
{{if .Reasons}}<h2>Errors</h2><ul>{{range .Reasons}}<li>{{.}}</li>{{end}}</ul>{{end}}
{{if .Examples}}<h2>Broken promises</h2><ul>{{range .Examples}}<li>{{.}}</li>{{end}}</ul>{{end}}
{{end}}</body></html>
`
