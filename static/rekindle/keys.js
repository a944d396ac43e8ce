// Shortcuts. A key acts on the row one stands on, else on the page; never while somebody types.
(() => {
  const keys = document.getElementById("keys");
  const rows = () => [...document.querySelectorAll("[data-row]")];
  const row = () => document.activeElement?.closest?.("[data-row]");
  const press = (selector) => (row()?.querySelector(selector) || (rows().length ? null : document.querySelector(`main ${selector}`)))?.click();
  const step = (by) => {
    const all = rows(), at = all.indexOf(row());
    const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1)];
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
  };
  const list = () => {
    keys.querySelectorAll("[data-if]").forEach((line) => { line.hidden = !document.querySelector(line.dataset.if); });
    keys.showModal();
  };
  const search = () => { const field = document.getElementById("search"); field?.focus(); field?.select(); };
  const acts = {
    "/": search, "?": list, j: () => step(1), k: () => step(-1),
    x: () => press("[data-select]"), r: () => press("[data-key=r]"), f: () => press("[data-key=f]"), c: () => press("[data-copy]"),
    p: () => rekindle.toggleLive(), t: () => rekindle.nextTheme(),
    Enter: () => { if (document.activeElement === row()) press("[data-open]"); },
  };
  // Space looks at the row one stands on without leaving the list, and back.
  const peek = (event) => {
    const shown = document.querySelector("#dialog[open]:has(.peek)"), link = document.activeElement === row() && row()?.querySelector("a[data-peek]");
    if (shown && !event.target.matches("button, summary")) shown.close();
    else if (link && !document.querySelector("dialog[open]")) rekindle.openDialog(`${link.href}?peek=yes`, row().id);
    else return;
    event.preventDefault();
  };
  let going = 0;

  document.addEventListener("keydown", (event) => {
    if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === "k") { event.preventDefault(); search(); return; }
    if (event.key === " ") { peek(event); return; }
    if (event.metaKey || event.ctrlKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.target.matches?.("input, textarea, select, [contenteditable]")) { if (event.key === "Escape") event.target.blur(); return; }
    if (Date.now() - going < 1500) {
      going = 0;
      const link = document.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
      if (link) { event.preventDefault(); link.click(); return; }
    }
    if (event.key === "g") { going = Date.now(); return; }
    if (acts[event.key]) { if (event.key !== "Enter") event.preventDefault(); acts[event.key](); }
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest?.("[data-keys]")) list();
    if (event.target === keys) keys.close();
  });
})();
