// One ticker for the page. What is marked data-live="URL" is asked for with its ETag and morphed if it changed.
(() => {
  const root = document.documentElement, contact = document.getElementById("contact");
  const menu = document.getElementById("live"), word = menu?.querySelector("[data-live-word]"), age = menu?.querySelector("[data-live-age]");
  const tags = new Map(), asking = new Set();
  const CLOSELY = 500, A_WHILE = 12000;
  let hurry = 0; // until then the page is followed closely: somebody has just done something worth watching
  let every = Number(rekindle.read("live") ?? 3), heard = Date.now(), asked = Date.now(), trouble = "";

  // What people did to the page is theirs: what they typed, ticked and unfolded stays.
  Idiomorph.defaults.callbacks.beforeAttributeUpdated = (name, node) =>
    !((name === "open" && node.localName === "details") || (name === "checked" && node.matches("[data-select]")) || (name === "value" && node === document.activeElement));

  const held = () => {
    if (!every) return "Paused";
    if (document.hidden) return "Hidden";
    if (document.querySelector("dialog[open], :popover-open")) return "Held";
    return getSelection().type === "Range" ? "Held" : "";
  };
  const poll = (place) => {
    if (asking.has(place)) return;
    asking.add(place);
    htmx.ajax("GET", place.dataset.live, { source: place, target: place, swap: "morph:innerHTML" })
      .catch(() => {}).finally(() => asking.delete(place));
  };
  const refresh = () => {
    asked = Date.now();
    document.querySelectorAll("[data-live]").forEach(poll);
    document.dispatchEvent(new CustomEvent("rekindle:tick"));
  };
  const mine = (event) => event.detail.elt.dataset?.live !== undefined;

  document.addEventListener("htmx:configRequest", (event) => {
    const tag = mine(event) && tags.get(event.detail.path);
    if (tag) event.detail.headers["If-None-Match"] = tag;
  });
  document.addEventListener("htmx:beforeSwap", (event) => {
    // It may have taken a while: somebody who began to read closely in the meantime is not disturbed.
    if (mine(event) && event.detail.xhr.status === 200 && held()) event.detail.shouldSwap = false;
    else if (mine(event) && event.detail.shouldSwap) tags.set(event.detail.pathInfo.requestPath, event.detail.xhr.getResponseHeader("ETag"));
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (!mine(event)) return;
    const next = event.detail.target.querySelector(":scope > [data-poll]")?.dataset.poll;
    if (next) event.detail.target.dataset.live = next;
  });

  const said = { 401: "Your session is over.", 403: "You may no longer see this.", 503: "The database does not answer; trying again." };
  const listen = (status) => {
    if (status === 200 || status === 304) { heard = Date.now(); trouble = ""; }
    else trouble = said[status] || (status ? `The server answered ${status}; trying again.` : "away");
    show();
  };
  document.addEventListener("htmx:afterRequest", (event) => {
    if (mine(event) && event.detail.xhr) listen(event.detail.xhr.status);
  });

  const show = () => {
    const ago = Math.round((Date.now() - heard) / 1000), pause = held();
    if (word) {
      word.textContent = trouble ? "Not live" : pause || "Live";
      age.textContent = every || trouble ? `updated ${ago} s ago` : "";
      menu.querySelector("summary").dataset.state = trouble ? "bad" : pause ? "held" : "live";
    }
    root.classList.toggle("away", Boolean(trouble));
    contact.hidden = !trouble;
    if (!trouble) return;
    const text = trouble === "away" ? `No contact for ${ago} s, trying again.` : trouble;
    const whole = trouble === "away" ? text : `${text} What you see is ${ago} s old.`;
    if (trouble !== said[401]) { contact.textContent = whole; return; }
    const link = document.createElement("a");
    link.href = location.href; link.className = "btn"; link.textContent = "Sign in again";
    contact.replaceChildren(whole, link);
  };
  const set = (seconds) => {
    every = seconds;
    rekindle.keep("live", String(seconds));
    menu?.querySelectorAll("[data-live-every]").forEach((b) => b.setAttribute("aria-pressed", Number(b.dataset.liveEvery) === every));
    if (every) refresh();
    show();
  };
  // The page of a silent database is replaced as soon as there is another; until then nothing of it moves.
  const silent = document.querySelector("[data-retry]");
  if (silent) setInterval(async () => {
    try { if ((await fetch(location.href, { method: "HEAD" })).status !== 503) location.replace(location.href); } catch { /* not yet */ }
  }, silent.dataset.retry * 1000);
  let before = 3;
  const toggle = () => { if (every) { before = every; set(0); } else set(before); };

  menu?.addEventListener("click", (event) => {
    const button = event.target.closest("[data-live-every]");
    if (button) { set(Number(button.dataset.liveEvery)); menu.open = false; }
  });
  document.addEventListener("visibilitychange", () => { if (!held()) refresh(); });
  document.addEventListener("hurry", () => { hurry = Date.now() + A_WHILE; });
  const pause = () => (Date.now() < hurry ? CLOSELY : every * 1000);
  setInterval(() => { if (!held() && Date.now() - asked >= pause()) refresh(); show(); }, 500);
  menu?.querySelectorAll("[data-live-every]").forEach((b) => b.setAttribute("aria-pressed", Number(b.dataset.liveEvery) === every));
  show();
  Object.assign(rekindle, { refresh, toggleLive: toggle, isHeld: () => Boolean(held()), heard: listen });
})();
