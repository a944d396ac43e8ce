// The bar under the list: how many are selected; its buttons wait until some are. All that match includes all that are shown.
(() => {
  const bar = document.getElementById("bulk"), all = bar.querySelector("[name=all]"), word = bar.querySelector("[data-selected]");
  const boxes = () => [...document.querySelectorAll("[data-select]")];
  const show = () => {
    const count = boxes().filter((box) => box.checked).length;
    word.textContent = all?.checked ? "All selected" : `${count} selected`;
    bar.querySelectorAll("button").forEach((button) => { button.disabled = !count && !all?.checked; });
  };
  document.addEventListener("change", (event) => {
    if (event.target === all) boxes().forEach((box) => { box.checked = all.checked; });
    else if (!event.target.matches("[data-select]")) return;
    else if (all) all.checked = false;
    show();
  });
  document.addEventListener("htmx:afterSwap", show);
  addEventListener("pageshow", show); // Back brings the ticks with it
})();
