// The theme draws the arrows that unfold its lists without a name; people who do not see them need one.
for (const arrow of document.querySelectorAll("details > summary:not([aria-label])")) {
  if (!arrow.textContent.trim()) {
    const above = arrow.parentElement.parentElement.querySelector("a");
    arrow.setAttribute("aria-label", `Pages below ${above ? above.textContent.trim() : "this one"}`);
  }
}
