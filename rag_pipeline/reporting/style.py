"""How the page looks: light and dark, on paper, and on a phone. Colours of series: Okabe and Ito's, which nearly
everybody can tell apart (https://jfly.uni-koeln.de/color/); lighter ones on dark ground."""

STYLE = """
:root { --ground: #fff; --panel: #f6f7f9; --ink: #1b1f24; --soft: #57606a; --rule: #d8dde3; --accent: #0059a8;
  --alarm: #a63a00;
  --s0: #0072b2; --s1: #b65a00; --s2: #00795a; --s3: #a8336f; --s4: #5a5a5a; --s5: #2b86c5; }
@media (prefers-color-scheme: dark) { :root { --ground: #14171b; --panel: #1d2127; --ink: #e8eaed; --soft: #a7b0ba;
  --rule: #39414a; --accent: #7cc0ff; --alarm: #ffab70;
  --s0: #56b4e9; --s1: #e69f00; --s2: #2fc89b; --s3: #e79ac4; --s4: #c2c7cd; --s5: #f0e442; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 68rem; background: var(--ground); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { margin: 0 0 .25rem; font-size: 1.75rem; line-height: 1.2; letter-spacing: -.01em; }
h2 { margin: 2rem 0 .25rem; padding-top: .75rem; border-top: 1px solid var(--rule); font-size: 1.25rem; }
p { margin: .25rem 0 .75rem; max-width: 44rem; }
header p, .more { color: var(--soft); }
a { color: var(--accent); }
a:focus-visible, .scroll:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
nav ul, .legend { display: flex; flex-wrap: wrap; gap: .25rem 1.1rem; margin: 0 0 1.25rem; padding: 0;
  list-style: none; }
code { font: .92em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; background: var(--panel);
  padding: .1em .3em; border-radius: .25em; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(14rem, 1fr)); gap: .75rem; margin: 0; }
.card { background: var(--panel); border: 1px solid var(--rule); border-radius: .5rem; padding: .7rem .9rem; }
.card dt { color: var(--soft); font-size: .85rem; }
.card dd { margin: 0; font-size: 1.5rem; line-height: 1.25; font-variant-numeric: tabular-nums; }
.card small { display: block; font-size: .8rem; color: var(--soft); }
.card.alarm { border-left: 4px solid var(--alarm); }
.card.alarm small { color: var(--alarm); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1rem; font-size: .9rem; }
caption { text-align: left; color: var(--soft); padding: .25rem 0; }
th, td { text-align: left; padding: .35rem .9rem .35rem 0; border-bottom: 1px solid var(--rule); vertical-align: top; }
th { font-weight: 600; }
td { white-space: nowrap; }
td.long { white-space: normal; min-width: 18rem; overflow-wrap: anywhere; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
th.n { white-space: normal; }
figure { margin: .75rem 0 1.25rem; }
figcaption { color: var(--soft); font-size: .9rem; margin-bottom: .25rem; }
.legend { margin: 0 0 .25rem; font-size: .85rem; }
.key { width: 28px; height: 8px; margin-right: .4rem; vertical-align: middle; }
.chart { display: block; width: 100%; min-width: 30rem; max-width: 60rem; height: auto; }
.chart text { fill: var(--soft); font-size: 12px; font-variant-numeric: tabular-nums; }
.grid { stroke: var(--rule); stroke-width: 1; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; }
.column { fill: var(--s0); }
path.s0 { stroke: var(--s0); } circle.s0 { fill: var(--s0); }
path.s1 { stroke: var(--s1); stroke-dasharray: 7 3; } circle.s1 { fill: var(--s1); }
path.s2 { stroke: var(--s2); stroke-dasharray: 2 3; } circle.s2 { fill: var(--s2); }
path.s3 { stroke: var(--s3); stroke-dasharray: 9 3 2 3; } circle.s3 { fill: var(--s3); }
path.s4 { stroke: var(--s4); stroke-dasharray: 4 4; } circle.s4 { fill: var(--s4); }
path.s5 { stroke: var(--s5); stroke-dasharray: 12 4; } circle.s5 { fill: var(--s5); }
@media (max-width: 40rem) { body { padding: 1.25rem 1rem 3rem; } h1 { font-size: 1.4rem; }
  .cards { grid-template-columns: 1fr 1fr; } .card dd { font-size: 1.2rem; } }
@media print { body { max-width: none; padding: 0; } nav { display: none; } section, figure, tr { break-inside: avoid; }
  h2 { break-after: avoid; } .scroll { overflow: visible; } .chart { min-width: 0; } }
"""
