// Back leads to what was chosen: any other change of the address, as by a slider, replaces the one that is shown. What a
// single deed changes one after the other, page and parts of the setup, is one step.

const DEEDS = ["pointerdown", "click", "keydown"];

let names; // of what is chosen, in the address

export default function ({ data }) {
  const begun = names !== undefined;
  names = data.names;
  if (!begun) begin();
}

function begin() {
  const push = history.pushState.bind(history);
  let acted = false;
  for (const deed of DEEDS) addEventListener(deed, () => (acted = true), true);
  addEventListener("popstate", () => (acted = false), true);
  history.pushState = (state, title, url) => {
    if (acted && isChoice(new URL(url, location))) {
      acted = false;
      push(state, title, url);
    } else history.replaceState(state, title, url);
  };
}

function isChoice(to) {
  const now = new URLSearchParams(location.search);
  return to.pathname !== location.pathname || names.some((name) => to.searchParams.get(name) !== now.get(name));
}
