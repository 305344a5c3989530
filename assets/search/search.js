// The search over pages, actions, what can be chosen, and terms, the list of shortcuts, and the address.

const MOST = 12; // rows at a time

export default function ({ data, parentElement, setTriggerValue }) {
  const find = (what) => parentElement.querySelector(what);
  const dialog = find(".search"), field = find("input"), list = find("ul"), said = find(".said"), keys = find(".keys");
  let shown = [];
  let at = 0;

  const draw = () => {
    const text = field.value.trim().toLowerCase();
    const found = tests(data, text);
    shown = found[0]?.kind === "test" ? [...found, ...matches(data.entries, text)] : [...matches(data.entries, text), ...found];
    at = 0;
    list.replaceChildren(...shown.map((entry, index) => row(entry, index)));
    mark();
  };

  const row = ({ kind, label, needs }, index) => {
    const item = document.createElement("li");
    item.id = `found-${index}`;
    item.role = "option";
    const [name, what] = [label, needs ? `${kind} · ${needs}` : kind].map((text) => Object.assign(document.createElement("span"), { textContent: text }));
    item.append(name, what);
    item.onclick = () => take(index);
    return item;
  };

  const mark = () => {
    [...list.children].forEach((item, index) => item.setAttribute("aria-selected", String(index === at)));
    field.setAttribute("aria-activedescendant", shown.length ? `found-${at}` : "");
    list.children[at]?.scrollIntoView({ block: "nearest" });
    said.textContent = shown.length ? (shown[at].reason ?? "") : "Nothing found.";
  };

  const take = (index) => {
    const entry = shown[index];
    if (!entry) return;
    if (entry.says) {
      said.textContent = `${entry.label}: ${entry.says}`;
      return;
    }
    if (entry.kind === "search") {
      said.textContent = "Searching the tests.";
      setTriggerValue("sought", entry.value);
      return;
    }
    dialog.close();
    const theme = entry.kind === "action" && entry.value.match(/^(Dark|Light) theme$/)?.[1];
    if (theme) return paint(theme, data.entries.filter(({ kind }) => kind === "page").map(({ value }) => value));
    setTriggerValue("chosen", { kind: entry.kind, value: entry.value });
  };

  const open = () => {
    field.value = "";
    draw();
    if (!dialog.open) dialog.showModal();
    field.focus();
  };

  const listKeys = () => {
    const rows = data.keys.flatMap(([key, what]) => [
      Object.assign(document.createElement("dt"), { textContent: key }),
      Object.assign(document.createElement("dd"), { textContent: what }),
    ]);
    keys.querySelector("dl").replaceChildren(...rows);
    if (!keys.open) keys.showModal();
  };

  // New data while it is open, such as the tests that were searched for: what is marked and said stays where it can.
  if (dialog.open) {
    const [marked, told] = [find('[aria-selected="true"]')?.textContent, said.textContent];
    draw();
    const place = [...list.children].findIndex((item) => item.textContent === marked);
    if (place >= 0) {
      at = place;
      mark();
      said.textContent = told;
    }
  }
  find(".open").onclick = open;
  find(".copy").onclick = async () => {
    const copied = await navigator.clipboard.writeText(location.href).then(() => true, () => false);
    find(".copy").textContent = copied ? "Copied" : "Copy the address above"; // a browser may refuse
    setTimeout(() => (find(".copy").textContent = "Copy link"), 2000);
  };
  find(".close").onclick = () => keys.close();
  field.oninput = draw;
  for (const one of [dialog, keys]) one.onclick = (event) => event.target === one && one.close();
  // While the page is drawn anew the browser may take the focus from the field: keys count wherever it is.
  const pressedInSearch = (event) => {
    field.focus();
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Enter") take(at);
    else if (step && shown.length) at = (at + step + shown.length) % shown.length;
    else return;
    event.preventDefault();
    if (step) mark();
  };

  const pressed = (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") open();
    else if (dialog.open) return pressedInSearch(event);
    else if (event.ctrlKey || event.metaKey || event.altKey || isWriting(event)) return;
    else if (event.key === "/") open();
    else if (event.key === "?") listKeys();
    else return;
    event.preventDefault();
  };
  // With new data this function runs again, but what it returned runs only at the end: older listeners must go. If still
  // newer data have come, it runs at once: the listener stays until theirs, as a key pressed in between would be lost.
  parentElement.listening?.abort();
  const listening = (parentElement.listening = new AbortController());
  document.addEventListener("keydown", pressed, { signal: listening.signal });
  return () => parentElement.isConnected || listening.abort();
}

// Entries with every word of what is written, those that begin with it first; a number is that of a test or a neuron.
function matches(entries, text) {
  const number = text.match(/^(?:test|neuron)?\s*#?(\d{1,9})$/)?.[1];
  const numbered = ["test", "neuron"]
    .filter((kind) => number && (text.startsWith(kind) || /^[#\d]/.test(text)))
    .map((kind) => ({ kind, label: `${kind[0].toUpperCase()}${kind.slice(1)} ${number}`, value: number }));
  const words = text.split(/\s+/);
  const found = entries.filter(({ kind, label }) => words.every((word) => `${kind} ${label}`.toLowerCase().includes(word)));
  const first = (entry) => (entry.label.toLowerCase().startsWith(text) ? 0 : 1);
  return [...numbered, ...found.sort((one, other) => first(one) - first(other))].slice(0, MOST);
}

// The tests with these classes or words: as found by the server, or the offer to search for them.
function tests({ tests, searchable }, text) {
  if (!searchable || !text) return [];
  if (tests?.text !== text) return [{ kind: "search", label: `Tests with “${text}”`, value: text }];
  const more = tests.total > tests.entries.length ? `, the first ${tests.entries.length} are listed` : "";
  const total = tests.total === 1 ? "1 test" : `${tests.total.toLocaleString("en")} tests`;
  return tests.entries.map((entry) => ({ ...entry, reason: `${total} with “${text}”${more}.` }));
}

// Streamlit takes the theme that its own menu would keep, as a page is loaded: for each page, by its path, another one.
function paint(name, pages) {
  const folder = location.pathname.replace(/[^/]*$/, "");
  for (const path of new Set([location.pathname, ...["", ...pages].map((page) => folder + page)])) localStorage.setItem(`stActiveTheme-${path}-v2`, JSON.stringify(name));
  location.reload();
}

// As a dialog closes, the focus stays in its hidden field until the browser paints again: nobody writes there.
function isWriting(event) {
  const where = event.composedPath()[0];
  if (!where.checkVisibility?.()) return false;
  return where.isContentEditable || where.tagName === "TEXTAREA" || (where.tagName === "INPUT" && where.type !== "radio");
}
