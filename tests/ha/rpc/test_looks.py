"""Calls that are answered in the turn that read them, and those that go the usual way after all."""

from prometheus_client import REGISTRY

from ha.rpc.server import Call, Method, RpcProtocol
from tests.ha.rpc import wire
from tests.log_lines import captured


class Window:
    """Answers a call by a look, unless its text says otherwise."""

    def __init__(self) -> None:
        self.looked: list[Call] = []
        self.handled = 0

    def protocol(self) -> RpcProtocol:
        method = Method(wire.Echo, self.handle, look=self.look)
        return RpcProtocol(wire.ECHO, {"echo": method})

    async def handle(self, _: Call, request: wire.Echo) -> wire.Echo:
        self.handled += 1
        return request

    def look(self, call: Call, data: bytes) -> bytes | None:
        self.looked.append(call)
        match wire.Echo.FromString(data).context:
            case "usual":
                return None
            case "broken":
                raise KeyError(17)
            case text:
                return wire.Echo(context=f"seen: {text}").SerializeToString()


def meters() -> dict[str, float]:
    names = {"protocol": wire.ECHO.rpartition(".")[2], "method": "echo"}
    read = REGISTRY.get_sample_value
    return {
        "answered": read("nnha_rpc_calls_total", {**names, "outcome": "success"}) or 0.0,
        "timed": read("nnha_rpc_call_seconds_count", names) or 0.0,
        "in flight": read("nnha_rpc_calls_in_flight") or 0.0,
    }


async def test_a_look_answers_with_the_meters_of_any_call() -> None:
    window = Window()
    async with wire.serving(window.protocol()) as (_, port), wire.calling(port) as connection:
        before = meters()
        assert await wire.ask(connection, "hello") == "seen: hello"
        assert await wire.ask(connection, "more") == "seen: more"
        after = meters()
    assert window.handled == 0
    assert {name: after[name] - before[name] for name in after} == {
        "answered": 2.0, "timed": 2.0, "in flight": 0.0,
    }  # fmt: skip
    assert [(call.protocol, call.method, call.call_id) for call in window.looked] == [
        (wire.ECHO, "echo", 0), (wire.ECHO, "echo", 1),
    ]  # fmt: skip


async def test_what_a_look_leaves_or_breaks_off_goes_the_usual_way() -> None:
    window = Window()
    async with wire.serving(window.protocol()) as (_, port), wire.calling(port) as connection:
        before = meters()
        assert await wire.ask(connection, "usual") == "usual"
        with captured("rpc.", here=True) as logs:
            assert await wire.ask(connection, "broken") == "broken"
        assert [entry["event"] for entry in logs] == ["rpc.look_failed"]
        assert await wire.ask(connection, "again") == "seen: again"
        after = meters()
    assert window.handled == 2
    assert {name: after[name] - before[name] for name in after} == {
        "answered": 3.0, "timed": 3.0, "in flight": 0.0,
    }  # fmt: skip
