// The bar under the list: how many are selected; its buttons wait until some are.
(() => {
  const bar = document.getElementById("bulk"), all = bar.querySelector("[name=all]"), word = bar.querySelector("[data-selected]");
  const show = () => {
    const count = document.querySelectorAll("[data-select]:checked").length;
    word.textContent = all?.checked ? "All of them" : `${count} selected`;
    bar.querySelectorAll("button").forEach((button) => { button.disabled = !count && !all?.checked; });
  };
  document.addEventListener("change", (event) => { if (event.target === all || event.target.matches("[data-select]")) show(); });
  document.addEventListener("htmx:afterSwap", show);
  addEventListener("pageshow", show); // Back brings the ticks with it
})();
