// Texts whose contrast with what lies behind them is below WCAG 2 AA: 4.5, or 3 for large ones.
() => {
  const parse = (text) => {
    const numbers = text.match(/[\d.]+/g).map(Number);
    return numbers.length < 4 ? [...numbers.slice(0, 3), 1] : numbers;
  };
  const over = (top, bottom) =>
    [0, 1, 2].map((i) => top[i] * top[3] + bottom[i] * (1 - top[3])).concat([1]);
  const luminance = (colour) => {
    const [r, g, b] = colour.slice(0, 3).map((value) => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    const layers = [];
    for (let node = element; node; node = node.parentElement) {
      const colour = parse(getComputedStyle(node).backgroundColor);
      layers.push(colour);
      if (colour[3] === 1) break;
    }
    return layers.reverse().reduce((ground, layer) => over(layer, ground), [255, 255, 255, 1]);
  };
  const failing = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    const text = texts.currentNode.textContent.trim();
    // A slider writes its value above its thumb, of which it is a child.
    if (!text || element.closest("svg, style, script, noscript, template, [data-testid=stSliderThumbValue]")) continue;
    const style = getComputedStyle(element);
    if (!element.getBoundingClientRect().width || style.visibility === "hidden") continue;
    let alpha = 1;
    for (let node = element; node; node = node.parentElement) alpha *= Number(getComputedStyle(node).opacity);
    if (alpha === 0) continue;
    const colour = parse(style.color);
    const ground = behind(element);
    const shown = over([...colour.slice(0, 3), colour[3] * alpha], ground);
    const [low, high] = [luminance(shown), luminance(ground)].sort((a, b) => a - b);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (Number(style.fontWeight) >= 700 && size >= 18.66);
    const contrast = (high + 0.05) / (low + 0.05);
    if (contrast < (large ? 3 : 4.5)) failing.push(`${contrast.toFixed(2)}: ${text.slice(0, 60)}`);
  }
  return failing;
};
