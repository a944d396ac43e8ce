// Links marked data-dialog open in the one <dialog>; without this script they are pages. Menus close when one looks away.
(() => {
  const dialog = document.getElementById("dialog"), body = document.getElementById("dialog-body");
  let opener = null;
  const open = (url, from) => {
    opener = from;
    htmx.ajax("GET", url, { source: body, target: body, swap: "innerHTML" });
  };

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[data-dialog]");
    if (link && !event.metaKey && !event.ctrlKey && !event.shiftKey) {
      event.preventDefault();
      open(link.href, (dialog.open && opener) || link.id || link.closest("[id]")?.id);
    }
    if (event.target.closest?.("#dialog [data-close]")) { event.preventDefault(); dialog.close(); }
    if (event.target === dialog) dialog.close(); // the backdrop
    document.querySelectorAll("details.menu[open]").forEach((menu) => { if (!menu.contains(event.target)) menu.open = false; });
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    document.querySelectorAll("details.menu[open]").forEach((menu) => { menu.open = false; menu.querySelector("summary").focus(); });
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target !== body) return;
    htmx.process(body); // now, not a moment later: whoever is quick presses a form that is ready
    const opened = !dialog.open;
    if (opened) dialog.showModal();
    if (opened || !body.contains(document.activeElement)) body.querySelector("[autofocus]")?.focus();
  });
  // An answer that was not drawn into the dialog ends it: the page shows the present truth, a toast says what happened.
  document.addEventListener("htmx:afterRequest", (event) => {
    const { elt, target, xhr } = event.detail;
    if (elt.closest?.("#dialog") && elt !== body && ((target !== body && xhr.status && xhr.status < 500) || xhr.status === 204)) dialog.close();
  });
  dialog.addEventListener("close", () => {
    body.replaceChildren();
    // The browser itself goes back to who had the focus. This is for one that was drawn anew; whoever has moved on is left there.
    const back = opener && document.activeElement === document.body && document.getElementById(opener);
    if (back) (back.matches("a, button, [tabindex]") ? back : back.querySelector("a, button"))?.focus();
    opener = null;
    rekindle.refresh();
  });
  Object.assign(rekindle, { openDialog: open });
})();
