// The offer of the guided tour: shown to a browser that remembers neither a tour nor a refusal.

const MEMORY = "idc-studio-tour"; // also in memory.js

function remembered() {
  try {
    return localStorage.getItem(MEMORY);
  } catch {
    return null; // a browser that keeps nothing is asked again
  }
}

export default function ({ data, parentElement, setTriggerValue }) {
  const offer = parentElement.querySelector(".offer");
  offer.querySelector(".take").textContent = `Take the tour: ${data.length}`;
  offer.querySelector(".take").onclick = () => setTriggerValue("take", true);
  offer.querySelector(".later").onclick = () => {
    try {
      localStorage.setItem(MEMORY, "declined");
    } catch {
      // then only this page forgets the offer
    }
    show(offer, false);
    const heading = document.querySelector('[data-testid="stMain"] h1');
    heading.tabIndex = -1;
    heading.focus();
  };
  show(offer, remembered() === null);
}

function show(offer, wanted) {
  offer.hidden = !wanted;
  const host = offer.getRootNode().host ?? offer;
  // The empty place would leave a gap.
  host.closest('[data-testid="stElementContainer"]').style.display = wanted ? "" : "none";
}
