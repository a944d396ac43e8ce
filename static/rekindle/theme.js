// Loaded before the first paint, so that nothing flashes: the theme and the zone somebody chose, and that scripts run.
(() => {
  const root = document.documentElement;
  const read = (name) => { try { return localStorage.getItem(`rekindle.${name}`); } catch { return null; } };
  const keep = (name, value) => { try { localStorage.setItem(`rekindle.${name}`, value); } catch { /* private window */ } };
  const words = { system: "System theme", light: "Light theme", dark: "Dark theme" };
  const order = Object.keys(words);
  const theme = () => root.dataset.theme || "system";

  const show = () => document.querySelectorAll("[data-theme-word]").forEach((e) => { e.textContent = words[theme()]; });
  const set = (name) => {
    if (name === "light" || name === "dark") root.dataset.theme = name; else delete root.dataset.theme;
    show();
    document.dispatchEvent(new CustomEvent("rekindle:theme"));
  };
  const next = () => { const name = order[(order.indexOf(theme()) + 1) % order.length]; keep("theme", name); set(name); };

  root.classList.add("js");
  root.dataset.zone = read("zone") === "utc" ? "utc" : "local";
  set(read("theme"));
  document.addEventListener("DOMContentLoaded", show);
  document.addEventListener("click", (event) => { if (event.target.closest?.("[data-theme-switch]")) next(); });
  addEventListener("storage", (event) => { if (event.key === "rekindle.theme") set(event.newValue); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => document.dispatchEvent(new CustomEvent("rekindle:theme")));
  window.rekindle = { read, keep, nextTheme: next };
})();
