// The theme draws the arrows that unfold its lists without a name; people who do not see them need one.
for (const arrow of document.querySelectorAll("details > summary:not([aria-label])")) {
  if (!arrow.textContent.trim()) {
    const above = arrow.parentElement.parentElement.querySelector("a");
    arrow.setAttribute("aria-label", `Pages below ${above ? above.textContent.trim() : "this one"}`);
  }
}

// A figure wider than the screen is small there: a tap opens it alone, where it can be moved and enlarged.
for (const image of document.querySelectorAll(".bd-article img")) {
  if (!image.closest("a, button")) {
    const link = Object.assign(document.createElement("a"), { href: image.src });
    link.setAttribute("aria-label", `Enlarge: ${image.alt || "figure"}`);
    image.replaceWith(link);
    link.append(image);
  }
}

// Lists of versions: each entry is the same page of another version, or its first page where it has no such page.
for (const list of document.querySelectorAll(".versions select")) {
  const { version, page, site } = list.dataset;
  const others = window.steppeVersions ?? {};
  list.replaceChildren(...Object.keys(others).map((name) => new Option(name, name, name === version, name === version)));
  list.addEventListener("change", () => {
    const name = list.value;
    window.location.href = `${site}${name}/${others[name].includes(page) ? page : "index.html"}`;
  });
}
