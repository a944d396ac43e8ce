// Times: relative, with the moment itself on hover; what runs ticks. The words are those of recovery/words.py.
(() => {
  const root = document.documentElement;
  // The server's clock, as of when its answer began: the browser's may be wrong.
  const began = performance.timeOrigin + (performance.getEntriesByType("navigation")[0]?.responseStart || 0);
  const said = Number(document.querySelector("meta[name=rekindle-now]")?.content) * 1000;
  const skew = said && Math.abs(said - began) > 2000 ? said - began : 0;
  const now = () => Date.now() + skew;

  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const distance = (seconds) => {
    const away = Math.abs(seconds);
    for (const [size, unit] of units) if (away >= size) {
      const text = `${Math.floor(away / size)} ${unit}`;
      return seconds > 0 ? `in ${text}` : `${text} ago`;
    }
    return "now";
  };
  const duration = (seconds) => {
    seconds = Math.max(seconds, 0);
    if (seconds > 0 && seconds < 0.095) return `${Math.max(1, Math.round(seconds * 1000))} ms`;
    if (seconds < 10) return `${seconds.toFixed(1)} s`;
    if (seconds < 60) return `${Math.round(seconds)} s`;
    const minutes = Math.floor(seconds / 60), hours = Math.floor(minutes / 60), days = Math.floor(hours / 24);
    if (hours < 1) return `${minutes} min`;
    if (days < 1) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
    return hours % 24 ? `${days} d ${hours % 24} h` : `${days} d`;
  };
  const two = (n) => String(n).padStart(2, "0");
  const exact = (at) => {
    const utc = root.dataset.zone === "utc", get = (part) => at[`get${utc ? "UTC" : ""}${part}`]();
    const zone = utc ? "UTC" : Intl.DateTimeFormat().resolvedOptions().timeZone;
    return `${get("FullYear")}-${two(get("Month") + 1)}-${two(get("Date"))} ${two(get("Hours"))}:${two(get("Minutes"))}:${two(get("Seconds"))} ${zone}`;
  };
  const moment = (at) => { // 09:00, 09:00 tomorrow, 09:00 on 3 May
    const utc = root.dataset.zone === "utc", zone = utc ? { timeZone: "UTC" } : {}, here = new Date(now());
    const close = Math.abs(at - here) < 600000;
    const clock = at.toLocaleTimeString("en-GB", { ...zone, hour: "2-digit", minute: "2-digit", ...(close ? { second: "2-digit" } : {}) });
    const day = (d) => Date.UTC(...(utc ? [d.getUTCFullYear(), d.getUTCMonth(), d.getUTCDate()] : [d.getFullYear(), d.getMonth(), d.getDate()])) / 86400000;
    const days = day(at) - day(here), word = { "-1": " yesterday", 0: "", 1: " tomorrow" }[days];
    if (word !== undefined) return clock + word;
    const year = at.getFullYear() !== here.getFullYear() ? { year: "numeric" } : {};
    return `${clock} on ${at.toLocaleDateString("en-GB", { ...zone, day: "numeric", month: "long", ...year })}`;
  };
  const write = (element) => {
    const at = new Date(element.dateTime), away = (at - now()) / 1000, as = element.dataset.as;
    const text = as === "clock" ? exact(at) : as === "moment" ? moment(at) : as === "duration" ? duration(-away) : distance(away);
    if (element.textContent !== text) element.textContent = text;
    const title = exact(at);
    if (element.title !== title) element.title = title;
  };
  const writeAll = () => document.querySelectorAll("time[datetime]").forEach(write);

  const zone = (name) => {
    root.dataset.zone = name;
    document.querySelectorAll("[data-zone-set]").forEach((b) => b.setAttribute("aria-pressed", b.dataset.zoneSet === name));
    writeAll();
    document.dispatchEvent(new CustomEvent("rekindle:zone"));
  };
  document.addEventListener("click", (event) => {
    const name = event.target.closest?.("[data-zone-set]")?.dataset.zoneSet;
    if (name) { rekindle.keep("zone", name); zone(name); }
  });
  // Nobody selects text that rewrites itself: a selection holds the clocks as well.
  setInterval(() => { if (!document.hidden && getSelection().type !== "Range") writeAll(); }, 1000);
  document.addEventListener("htmx:afterSwap", writeAll);
  zone(root.dataset.zone);
  Object.assign(rekindle, { distance, duration });
})();
