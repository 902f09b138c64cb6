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
