// Short sentences that go away by themselves, bad ones when they are closed; and buttons that copy.
(() => {
  const place = document.getElementById("toasts");
  const say = (text, bad = false) => {
    if ([...place.children].some((old) => old.dataset.text === text)) return;
    const toast = document.createElement("div"), close = document.createElement("button");
    toast.className = bad ? "toast failed" : "toast";
    toast.dataset.text = text;
    close.type = "button"; close.className = "plain"; close.textContent = "Close";
    close.addEventListener("click", () => toast.remove());
    toast.append(text, close);
    place.append(toast);
    if (!bad) setTimeout(() => toast.remove(), 5000);
  };
  const copy = async (text) => {
    try { await navigator.clipboard.writeText(text); say(`Copied ${text}`); }
    catch { say(`The browser did not allow copying. It is ${text}`, true); }
  };
  document.addEventListener("toast", (event) => say(event.detail.text, event.detail.bad));
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-copy]");
    if (button) copy(button.dataset.copy);
  });
  Object.assign(rekindle, { say, copy });
})();
