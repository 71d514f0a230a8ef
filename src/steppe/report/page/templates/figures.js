const viewer = document.getElementById("viewer");
const openers = [...document.querySelectorAll(".enlarge")];
let shownFigure = 0;

function showFigure(number) {
  shownFigure = (number + openers.length) % openers.length;
  const figure = openers[shownFigure].closest("figure");
  const small = figure.querySelector("img");
  const image = document.getElementById("viewer-image");
  image.src = small.src;
  image.alt = small.alt;
  document.getElementById("viewer-title").textContent = figure.querySelector("figcaption b").textContent;
  document.getElementById("viewer-caption").textContent = figure.querySelector("figcaption").lastChild.textContent.trim();
}

openers.forEach((opener, number) => {
  opener.addEventListener("click", () => {
    showFigure(number);
    viewer.showModal();
  });
});
document.getElementById("viewer-close").addEventListener("click", () => viewer.close());
viewer.addEventListener("click", (event) => {
  if (event.target === viewer) viewer.close(); // the backdrop
});
viewer.addEventListener("keydown", (event) => {
  const turn = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (turn) showFigure(shownFigure + turn);
});
viewer.addEventListener("close", () => openers[shownFigure].focus());
