"""How the page of a report looks, on a phone and in the dark too, and how its tables are sorted."""

from typing import Final

STYLE: Final = """
:root{color-scheme:light dark;--ink:#1c2024;--soft:#5d6570;--ground:#fff;--line:#dde1e6;
--stripe:#f5f7f9;--s0:#2f6fb0;--s1:#d9822b;--link:#1d5a9c}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ec;--soft:#a2abb5;--ground:#15181b;
--line:#343a41;--stripe:#1d2125;--s0:#5b9ee0;--s1:#e39a50;--link:#84bbf2}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:62rem;padding:1rem;background:var(--ground);color:var(--ink);
font:16px/1.45 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.6rem;margin:.2rem 0}h2{font-size:1.3rem;margin:2.4rem 0 .4rem;padding-top:.6rem;
border-top:1px solid var(--line)}details{margin:.6rem 0}summary{cursor:pointer;
font-weight:600;padding:.2rem 0}#open{font:inherit;font-size:.85rem;margin-top:.8rem;
padding:.3rem .7rem;border:1px solid var(--line);border-radius:4px;background:var(--stripe);
color:var(--ink);cursor:pointer}
nav{display:flex;flex-wrap:wrap;gap:.3rem 1rem}a{color:var(--link)}
figure{margin:1.4rem 0}figcaption{font-weight:600;margin-bottom:.4rem}
.legend{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;font-size:.85rem;color:var(--soft);
margin-bottom:.4rem}.legend i{display:inline-block;width:.8rem;height:.8rem;margin-right:.4rem;
border-radius:2px;vertical-align:-.05rem}
.s0{background:var(--s0)}.s1{background:var(--s1)}
.bars{display:grid;grid-template-columns:fit-content(38%) minmax(0,1fr);gap:.35rem .8rem;
font-size:.85rem;align-items:center}
.label{text-align:right}.bar{display:flex;align-items:center;gap:.4rem;line-height:1.25}
.bar i{height:.95rem;width:calc(var(--w)*(100% - 5.2rem));min-width:1px;border-radius:2px;flex:none}
.bar span{white-space:nowrap;color:var(--soft);font-variant-numeric:tabular-nums}
.two{display:grid;grid-template-columns:1fr 1fr}.two .left{flex-direction:row-reverse}
.two .right{border-left:1px solid var(--soft)}
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:.85rem;
font-variant-numeric:tabular-nums}
th,td{text-align:right;padding:.28rem .5rem;white-space:nowrap;border-bottom:1px solid var(--line)}
.name{text-align:left;white-space:normal;min-width:11rem}
tbody tr:nth-child(even){background:var(--stripe)}
th button{all:unset;cursor:pointer;font-weight:600;color:var(--soft)}
th button:focus-visible{outline:2px solid var(--link)}
th[aria-sort=ascending] button::after{content:" \\2191"}
th[aria-sort=descending] button::after{content:" \\2193"}
.note{font-size:.85rem;color:var(--soft)}
@media(max-width:36rem){body{padding:.7rem}.bars{grid-template-columns:1fr;gap:.1rem}
.label{text-align:left;margin-top:.35rem}.name{min-width:9rem}}
@media print{nav,#open{display:none}h2{break-after:avoid}figure{break-inside:avoid}}
"""

SCRIPT: Final = """
document.getElementById("open").addEventListener("click", function (event) {
  var all = document.querySelectorAll("details"), open = !all[0] || !all[0].open;
  all.forEach(function (one) { one.open = open; });
  event.target.textContent = open ? "Close all tables" : "Open all tables";
});
document.querySelectorAll("th button").forEach(function (button) {
  button.addEventListener("click", function () {
    var head = button.parentNode, table = head.closest("table"), column = head.cellIndex;
    var down = head.getAttribute("aria-sort") !== "descending";
    table.querySelectorAll("th").forEach(function (other) { other.removeAttribute("aria-sort"); });
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    var body = table.tBodies[0], rows = Array.from(body.rows);
    rows.sort(function (a, b) {
      var one = a.cells[column], two = b.cells[column], order;
      order = one.dataset.v === undefined
        ? one.textContent.localeCompare(two.textContent, undefined, {numeric: true})
        : Number(one.dataset.v) - Number(two.dataset.v);
      return down ? -order : order;
    });
    rows.forEach(function (row) { body.appendChild(row); });
  });
});
"""
