// A picture to paint on, by pointer or by keyboard. What was painted goes to the server when the pointer is lifted.

const REST_MS = 300; // without a key before what was painted is sent
const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

const cursors = new WeakMap(); // where the keyboard paints, kept when the page is drawn again

export default function ({ data, parentElement, setStateValue }) {
  const { width, height, side, name } = data;
  const canvas = parentElement.querySelector("canvas");
  const brush = parentElement.querySelector(".colour"), size = parentElement.querySelector(".size");
  Object.assign(canvas, { width, height });
  Object.assign(canvas.style, { width: `${side}px`, height: `${(side * height) / width}px` });
  canvas.setAttribute("aria-label", `${name}: arrow keys move, space paints`);
  const context = canvas.getContext("2d");
  const original = Uint8Array.from(atob(data.pixels), (letter) => letter.charCodeAt(0)); // red, green, blue, row by row
  const painted = new Map(data.painted.map(([at, ...colour]) => [at, colour]));
  const at = cursors.get(parentElement) ?? { x: width >> 1, y: height >> 1 };
  cursors.set(parentElement, at);
  let waiting;

  const draw = () => {
    const picture = context.createImageData(width, height);
    for (let pixel = 0; pixel < width * height; pixel++) {
      const colour = painted.get(pixel) ?? original.subarray(3 * pixel, 3 * pixel + 3);
      picture.data.set([...colour, 255], 4 * pixel);
    }
    context.putImageData(picture, 0, 0);
    if (parentElement.activeElement === canvas || canvas.getRootNode().activeElement === canvas) {
      context.fillStyle = "rgb(11 107 114 / 60%)";
      context.fillRect(at.x, at.y, 1, 1);
    }
  };

  const paint = () => {
    const colour = brush.value.match(/\w\w/g).map((part) => parseInt(part, 16));
    const reach = size.value - 1;
    for (let y = Math.max(0, at.y - reach); y <= Math.min(height - 1, at.y + reach); y++)
      for (let x = Math.max(0, at.x - reach); x <= Math.min(width - 1, at.x + reach); x++) painted.set(y * width + x, colour);
    draw();
  };

  const send = () => setStateValue("painted", [...painted].map(([pixel, colour]) => [pixel, ...colour]));

  const move = (event) => {
    const box = canvas.getBoundingClientRect();
    at.x = Math.min(width - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * width)));
    at.y = Math.min(height - 1, Math.max(0, Math.floor(((event.clientY - box.top) / box.height) * height)));
  };

  canvas.onpointerdown = (event) => {
    canvas.setPointerCapture(event.pointerId);
    move(event);
    paint();
  };
  canvas.onpointermove = (event) => {
    if (!event.buttons) return;
    move(event);
    paint();
  };
  canvas.onpointerup = send;
  canvas.onkeydown = (event) => {
    const step = STEPS[event.key];
    if (step) {
      at.x = Math.min(width - 1, Math.max(0, at.x + step[0]));
      at.y = Math.min(height - 1, Math.max(0, at.y + step[1]));
      draw();
    } else if (event.key === " ") {
      paint();
      clearTimeout(waiting);
      waiting = setTimeout(send, REST_MS);
    } else return;
    event.preventDefault();
    event.stopPropagation(); // elsewhere on the page arrow keys go to another test
  };
  canvas.onfocus = canvas.onblur = draw;
  parentElement.querySelector(".reset").onclick = () => {
    painted.clear();
    draw();
    send();
  };
  draw();
  return () => clearTimeout(waiting);
}
