"""What applications use: limits, logs, transports and threads."""

import asyncio
import io
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import unittest
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import anthropic
import httpx
import httpx2
import openai
import wasmtime
from sluice_core import transport_httpx2
from sluice_core import Builtin, Guard, Guards, GuardsError, Mask, MaskFilter, MaskStream, Pattern, RateLimiter, TokenCounter
from sluice_core.calls import _bind_types, bind
from sluice_core.transport import AsyncGuardTransport, GuardTransport

guards = [Guard([Builtin.EMAIL])]
rejecting = [Guard(["forbidden"], rejects=True)]


class Vendor(BaseHTTPRequestHandler):
    """Answers with what it was asked: whole, or one character an event."""

    received: list[dict[str, Any]] = []
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.answer("application/json", b'{"data": []}')

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        Vendor.received.append(body)
        text = body["messages"][-1]["content"].removeprefix("say ")
        if text == "garbage":
            self.answer("application/json", b'{"choices": [')
        elif text.startswith("fail "):
            message = text.removeprefix("fail ").replace("_AT_", "@")
            self.answer("application/json", json.dumps({"error": {"message": message}}).encode(), 400)
        elif body.get("stream"):
            pieces = [{"choices": [{"index": 0, "delta": {"content": each}}]} for each in text.replace("_AT_", "@")]
            events = "".join(f"data: {json.dumps(each)}\n\n" for each in pieces) + "data: [DONE]\n\n"
            self.answer("text/event-stream", events.encode())
        else:
            message = {"role": "assistant", "content": text.replace("_AT_", "@")}
            self.answer("application/json", json.dumps({"choices": [{"index": 0, "message": message}]}).encode())

    def answer(self, media: str, body: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("content-type", media)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def chat(text: str, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], **more}


def streamed(body: str) -> str:
    events = [line.removeprefix("data: ") for line in body.splitlines() if line.startswith("data: {")]
    choices = [json.loads(event).get("choices", []) for event in events]
    deltas = [choice["delta"] for each in choices for choice in each]
    return "".join(delta.get("content", "") for delta in deltas)


class Transports(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.server = ThreadingHTTPServer(("127.0.0.1", 0), Vendor)
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        cls.url = f"http://127.0.0.1:{cls.server.server_port}/v1/chat/completions"

    @classmethod
    def tearDownClass(cls) -> None:
        cls.server.shutdown()

    def test_masks_requests_and_answers(self) -> None:
        with httpx.Client(transport=GuardTransport(request=guards, response=guards)) as client:
            answer = client.post(self.url, json=chat("say ada@example.com bob_AT_example.com")).json()
        self.assertIn("<EMAIL_ADDRESS>", Vendor.received[-1]["messages"][0]["content"])
        self.assertEqual(answer["choices"][0]["message"]["content"], "<EMAIL_ADDRESS> <EMAIL_ADDRESS>")

    def test_masks_streams(self) -> None:
        with httpx.Client(transport=GuardTransport(response=guards)) as client:
            body = client.post(self.url, json=chat("say to bob_AT_example.com now", stream=True)).text
        self.assertEqual(streamed(body), "to <EMAIL_ADDRESS> now")
        self.assertTrue(body.rstrip().endswith("data: [DONE]"))

    def test_masks_streams_of_async_clients(self) -> None:
        async def run() -> str:
            transport = AsyncGuardTransport(request=guards, response=guards)
            async with httpx.AsyncClient(transport=transport) as client:
                return (await client.post(self.url, json=chat("say bob_AT_example.com", stream=True))).text

        self.assertEqual(streamed(asyncio.run(run())), "<EMAIL_ADDRESS>")

    def test_rejects(self) -> None:
        with httpx.Client(transport=GuardTransport(request=rejecting, response=rejecting)) as client:
            before = len(Vendor.received)
            self.assertEqual(client.post(self.url, json=chat("forbidden")).status_code, 403)
            self.assertEqual(len(Vendor.received), before)
        with httpx.Client(transport=GuardTransport(response=rejecting)) as client:
            body = client.post(self.url, json=chat("say forbidden", stream=True)).text
            self.assertNotIn("forbidden", streamed(body))
            self.assertIn("rejected", body)
            refused = client.post(self.url, json=chat("say forbidden"))
            self.assertEqual(refused.status_code, 403)
            self.assertNotIn("forbidden", refused.text)

    def test_masks_errors_of_the_vendor(self) -> None:
        with httpx.Client(transport=GuardTransport(response=[*guards, *rejecting])) as client:
            failed = client.post(self.url, json=chat("fail unknown user bob_AT_example.com"))
            self.assertEqual((failed.status_code, failed.json()["error"]["message"]), (400, "unknown user <EMAIL_ADDRESS>"))
            self.assertNotIn("forbidden", client.post(self.url, json=chat("fail forbidden")).text)

    def test_passes_only_known_paths(self) -> None:
        base = self.url.removesuffix("/chat/completions")
        transport = GuardTransport(request=guards, response=guards, unguarded_paths=["/v1/models"])
        with httpx.Client(transport=transport) as client:
            self.assertEqual(client.get(f"{base}/models").json(), {"data": []})
            for method, path in [
                ("GET", "responses/1"),
                ("GET", "chat/completions"),
                ("DELETE", "chat/completions"),
                ("POST", "threads/1/messages"),
                ("POST", "models/1"),
            ]:
                with self.subTest(method=method, path=path), self.assertRaises(GuardsError):
                    client.request(method, f"{base}/{path}", json={"content": "ada@example.com"})

    def test_reads_requests_from_iterators(self) -> None:
        body = json.dumps(chat("say ada@example.com")).encode()
        with httpx.Client(transport=GuardTransport(request=guards)) as client:
            client.post(self.url, content=iter([body[:20], body[20:]]))
        self.assertEqual(Vendor.received[-1]["messages"][0]["content"], "say <EMAIL_ADDRESS>")

    def test_fails_closed(self) -> None:
        with httpx.Client(transport=GuardTransport(request=guards, response=guards)) as client:
            self.assertIn("error", client.post(self.url, json=chat("say garbage")).text)
            with self.assertRaises(GuardsError):
                client.post(self.url, content=b"{", headers={"content-type": "application/json"})
            with self.assertRaises(GuardsError):
                client.post(self.url.replace("chat/completions", "images"), json={})


class Sdks(unittest.TestCase):
    """Clients of vendors take the transports, so that no text leaves unmasked."""

    requests: list[bytes] = []

    def answer(self, request: Any) -> Any:
        Sdks.requests.append(request.content)
        if request.url.path.endswith("/messages"):
            content = [{"type": "text", "text": "to bob@example.com"}]
            body = {"id": "1", "type": "message", "role": "assistant", "model": "m", "content": content}
            return httpx2.Response(200, json={**body, "usage": {"input_tokens": 1, "output_tokens": 1}})
        message = {"role": "assistant", "content": "to bob@example.com"}
        choices = [{"index": 0, "finish_reason": "stop", "message": message}]
        return httpx2.Response(200, json={"id": "1", "object": "chat.completion", "choices": choices})

    def client(self) -> Any:
        vendor = httpx2.MockTransport(self.answer)
        transport = transport_httpx2.GuardTransport(request=guards, response=guards, transport=vendor)
        return httpx2.Client(transport=transport)

    def async_client(self) -> Any:
        vendor = httpx2.MockTransport(self.answer)
        transport = transport_httpx2.AsyncGuardTransport(request=guards, response=guards, transport=vendor)
        return httpx2.AsyncClient(transport=transport)

    messages: list[Any] = [{"role": "user", "content": "I am ada@example.com"}]

    def check(self, text: str | None) -> None:
        self.assertEqual(text, "to <EMAIL_ADDRESS>")
        self.assertIn(b"I am <EMAIL_ADDRESS>", Sdks.requests[-1])

    def test_guards_anthropic(self) -> None:
        sdk = anthropic.Anthropic(api_key="k", http_client=self.client())
        self.check(sdk.messages.create(model="m", max_tokens=9, messages=self.messages).content[0].text)

    def test_guards_asynchronous_anthropic(self) -> None:
        async def run() -> str:
            sdk = anthropic.AsyncAnthropic(api_key="k", http_client=self.async_client())
            return (await sdk.messages.create(model="m", max_tokens=9, messages=self.messages)).content[0].text

        self.check(asyncio.run(run()))

    def test_guards_openai(self) -> None:
        sdk = openai.OpenAI(api_key="k", http_client=self.client())
        self.check(sdk.chat.completions.create(model="m", messages=self.messages).choices[0].message.content)


class Library(unittest.TestCase):
    def test_rewrites_whole_messages(self) -> None:
        body = json.dumps(chat("ada\\u0040example.com ada@example.com")).encode()
        masked = Guards(guards).rewrite("Completions", "request", body)
        self.assertIn(b"<EMAIL_ADDRESS>", masked)
        self.assertEqual(json.loads(masked)["model"], "m")

    def test_streams_of_text(self) -> None:
        text = "é ada@example.com 日本"
        for cut in range(len(text)):
            stream = MaskStream(Mask([Builtin.EMAIL]))
            self.assertEqual(stream.push(text[:cut]) + stream.end(text[cut:]), "é <EMAIL_ADDRESS> 日本")

    def test_surrogates(self) -> None:
        mask = Mask([Builtin.EMAIL])
        self.assertEqual(mask("a\ud800b \ud83d\ude00"), "a\ufffdb 😀")
        self.assertTrue(Pattern("a.b").is_match("a\ud800b"))
        stream = MaskStream(mask)
        self.assertEqual(stream.push("x\ud83d") + stream.push("\ude00 \ud800") + stream.end(), "x😀 \ufffd")

    def test_limits(self) -> None:
        limiter = RateLimiter(rate=1, per=3600, burst=1)
        self.assertTrue(limiter.take("a"))
        self.assertTrue(limiter.take("a"))
        refused = limiter.take("a")
        self.assertFalse(refused)
        self.assertGreater(refused.wait, 3000)
        self.assertTrue(limiter.take("b"))
        limiter.charge(5, "b")
        self.assertLess(limiter.peek("b").remaining, 0)

    def test_refuses_limits_that_are_no_numbers(self) -> None:
        nan, infinite = float("nan"), float("inf")
        for wrong in [{"rate": nan}, {"rate": infinite}, {"burst": infinite}, {"per": infinite}, {"keys": 0}]:
            with self.subTest(**wrong), self.assertRaisesRegex(ValueError, "must be finite"):
                RateLimiter(**{"rate": 1, **wrong})

    def test_refuses_what_is_no_rule(self) -> None:
        for make in (Mask, MaskFilter, lambda rules: Guards([Guard(rules)])):
            with self.assertRaisesRegex(TypeError, "rules must be a list of rules, not str"):
                make("abc")
            with self.assertRaisesRegex(TypeError, r"rules\[1\] must match a str or a Builtin, not NoneType"):
                make(["a", None])

    def test_masks_log_records(self) -> None:
        out = io.StringIO()
        handler = logging.StreamHandler(out)
        handler.addFilter(MaskFilter([Builtin.EMAIL]))
        logger = logging.getLogger("masked")
        logger.addHandler(handler)
        logger.propagate = False
        try:
            raise ValueError("of bob@example.com")
        except ValueError:
            logger.exception("login of %s failed", "ada@example.com")
        self.assertIn("login of <EMAIL_ADDRESS> failed", out.getvalue())
        self.assertIn("ValueError: of <EMAIL_ADDRESS>", out.getvalue())
        self.assertNotIn("@", out.getvalue())

    def test_masks_records_with_wrong_arguments_and_extra_values(self) -> None:
        out = io.StringIO()
        handler = logging.StreamHandler(out)
        handler.setFormatter(logging.Formatter("%(message)s %(user)s"))
        handler.addFilter(MaskFilter([Builtin.EMAIL]))
        record = logging.makeLogRecord({"msg": "login of %s %s", "args": ("ada@example.com",), "user": "bob@example.com"})
        handler.handle(record)
        self.assertIn("<EMAIL_ADDRESS>", out.getvalue())
        self.assertNotIn("@", out.getvalue())

    def test_counts_messages(self) -> None:
        class Message:
            type = "human"
            content = ["hello", {"type": "text", "text": " world"}]

        self.assertEqual(TokenCounter()([Message()]), TokenCounter()([{"role": "human", "content": ["hello", " world"]}]))

        self.assertEqual(TokenCounter()("hello"), TokenCounter()(["hello"]))
        call = {"role": "assistant", "content": None, "tool_calls": [{"function": {"arguments": "word " * 50}}]}
        self.assertGreater(TokenCounter()([call]), 50)

    def test_threads(self) -> None:
        mask, wrong = Mask([Builtin.EMAIL]), []

        def work(number: int) -> None:
            for _ in range(200):
                if mask(f"{number} a{number}@example.com") != f"{number} <EMAIL_ADDRESS>":
                    wrong.append(number)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


#: Forks twenty times while another thread is inside of the core, and prints a line for each child that does its work.
FORKS = """
import logging, os, sys, threading
from sluice_core import transport_httpx2
from sluice_core import Builtin, Guard, Guards, Mask, MaskFilter

mask = Mask([Builtin.EMAIL])
class Discarding(logging.Handler):
    # Locks of files are not safe after a fork.
    def emit(self, record):
        pass

handler = Discarding()
handler.addFilter(MaskFilter(mask))
logging.getLogger().addHandler(handler)

def work():
    while True:
        logging.warning("login of %s", "ada@example.com " * 2000)

threading.Thread(target=work, daemon=True).start()
for number in range(20):
    child = os.fork()
    if child == 0:
        logging.warning("login of %s", "ada@example.com")
        masked = mask("bob@example.com"), Mask(["b"])("abc")
        if number == 0:
            # The parent has not compiled the module of messages.
            out = Guards([Guard(["x"])]).rewrite("Embeddings", "request", b'{"input": "x"}')
            masked += (b"<masked>" in out,)
        os._exit(0 if masked[:2] == ("<EMAIL_ADDRESS>", "a<masked>c") and all(masked) else 1)
    print(os.waitpid(child, 0)[1], flush=True)
mask("ada@example.com")
"""


class ForkTest(unittest.TestCase):
    @unittest.skipUnless(hasattr(os, "fork"), "the system cannot fork")
    def test_works_in_children_that_are_forked_while_a_thread_masks(self) -> None:
        options = {"stdout": subprocess.PIPE, "text": True, "start_new_session": True}
        with subprocess.Popen([sys.executable, "-W", "ignore", "-c", FORKS], **options) as process:
            try:
                printed = process.communicate(timeout=60)[0]
            finally:
                # A child that hangs keeps the output open.
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        self.assertEqual((process.returncode, printed.split()), (0, ["0"] * 20))


class CallsTest(unittest.TestCase):
    """Functions of a module, called with the types that were read before and through ``wasmtime.Func``."""

    source = """
        (module
          (func (export "types") (param i32 f64) (result f64) (f64.add (f64.convert_i32_s (local.get 0)) (local.get 1)))
          (func (export "wide") (param i64 f32) (result i64) (local.get 0))
          (func (export "nothing"))
          (func (export "trap") (result i32) unreachable)
          (func (export "two") (result i32 i32) (i32.const 1) (i32.const 2)))
    """

    def setUp(self) -> None:
        self.store = wasmtime.Store()
        self.exports = wasmtime.Instance(self.store, wasmtime.Module(self.store.engine, self.source), []).exports(self.store)

    def of(self, name: str, make: Callable[..., Any] = bind) -> Callable[..., Any]:
        function = self.exports[name]
        assert isinstance(function, wasmtime.Func)
        return make(self.store, function)

    def test_passes_numbers_of_all_types(self) -> None:
        for make in bind, _bind_types:
            self.assertEqual(self.of("types", make)(-2, 0.5), -1.5)
            self.assertEqual(self.of("wide", make)(1 << 40, 1.0), 1 << 40)
            self.assertIsNone(self.of("nothing", make)())

    def test_raises_traps_and_refuses_a_wrong_number_of_arguments(self) -> None:
        for make in bind, _bind_types:
            with self.assertRaises(wasmtime.Trap):
                self.of("trap", make)()
            with self.assertRaises(ValueError):
                self.of("types", make)(1)

    def test_calls_through_wasmtime_what_it_cannot_call_itself(self) -> None:
        with self.assertRaises(TypeError):
            self.of("two", _bind_types)
        self.assertEqual(self.of("two")(), [1, 2])


if __name__ == "__main__":
    unittest.main()
