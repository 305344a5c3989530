"""One session that trains on a running dashboard while others are measured: `python -m benchmarks.training_session`.

It takes the port of the dashboard, opens the page Robustness over Streamlit's own protocol, starts retraining there and
keeps asking for it, as the page does in a browser. It prints how far the training is.
"""

import argparse
import asyncio
import re
import time

import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

QUERY = "model={model}&epochs=20&seeds=10"
LOOK_S = 1.0
"""Seconds between two looks at how far it is, as on the page."""


async def _run(connection, query: str, click: str = "") -> tuple[str, str]:
    """Run the page, clicking on a button; return the button that starts the training, and what the page says of it."""
    ask = BackMsg()
    ask.rerun_script.page_name, ask.rerun_script.query_string = "robustness", query
    if click:
        widget = ask.rerun_script.widget_states.widgets.add()
        widget.id, widget.trigger_value = click, True
    await connection.send(ask.SerializeToString())
    start, said = "", ""
    while True:
        message = ForwardMsg()
        message.ParseFromString(await asyncio.wait_for(connection.recv(), 180))
        if message.WhichOneof("type") == "script_finished":
            return start, said
        if message.WhichOneof("type") == "delta" and message.delta.WhichOneof("type") == "new_element":
            element = message.delta.new_element
            if element.WhichOneof("type") == "button" and element.button.label in ("Start", "Continue"):
                start = element.button.id
            if element.WhichOneof("type") == "progress":
                said = element.progress.text


async def _train(port: int, model: str, seconds: float) -> None:
    origin = f"http://127.0.0.1:{port}"
    address = f"ws://127.0.0.1:{port}/_stcore/stream"
    query, end, told = QUERY.format(model=model), time.monotonic() + seconds, ""
    async with websockets.connect(address, max_size=None, origin=origin, subprotocols=["streamlit"]) as connection:
        while time.monotonic() < end:
            start, said = await _run(connection, query)
            if start:
                _, said = await _run(connection, query, click=start)
            if (now := re.sub(r";.*", "", said)) != told:
                told = now
                print(f"{end - time.monotonic():5.0f} s left: {said}", flush=True)
            await asyncio.sleep(LOOK_S)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("port", type=int, help="port of the dashboard on this computer")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--model", default="lenet5-digits")
    args = parser.parse_args()
    asyncio.run(_train(args.port, args.model, args.seconds))


if __name__ == "__main__":
    main()
