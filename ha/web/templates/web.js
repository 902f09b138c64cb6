// Puts the sections that changed in place, and says when no news come.
"use strict";
(() => {
  const OLD_MS = 4000;
  const AGAIN_MS = 2000;
  const age = document.getElementById("age");
  const stale = document.getElementById("stale");
  let heard = performance.now();
  let source;

  const put = (name, html) => {
    const section = document.getElementById(`s-${name}`);
    if (!section) return;
    const focused = section.contains(document.activeElement) ? document.activeElement.id : "";
    section.innerHTML = html;
    delete section.dataset.digest;
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  };

  const tell = () => {
    const passed = performance.now() - heard;
    const old = passed > OLD_MS;
    const seconds = Math.round(passed / 1000);
    document.documentElement.classList.toggle("old", old);
    if (stale.hidden === old) {
      stale.hidden = !old;
      stale.textContent = old ? "nnha web gives no answer: what you see is old." : "";
    }
    age.textContent = old ? `no news for ${seconds} s` : `live, ${(passed / 1000).toFixed(1)} s old`;
  };

  const listen = () => {
    const asked = new URLSearchParams({ page: location.pathname });
    for (const { dataset } of document.querySelectorAll("[data-digest]")) asked.append("shown", dataset.digest);
    source = new EventSource(`/events?${asked}`);
    source.addEventListener("look", ({ data }) => {
      heard = performance.now();
      for (const [name, html] of Object.entries(JSON.parse(data))) put(name, html);
      tell();
    });
    source.addEventListener("error", () => {
      if (source.readyState === EventSource.CLOSED) setTimeout(follow, AGAIN_MS);
    });
  };

  // A browser has six connections to one server: a tab that nobody sees must not keep one.
  const follow = () => {
    source?.close();
    if (!document.hidden) listen();
  };

  document.addEventListener("visibilitychange", follow);
  setInterval(tell, 500);
  requestAnimationFrame(() => setTimeout(follow)); // behind the first frame
})();
