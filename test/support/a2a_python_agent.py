"""An A2A agent of versions 1.0 and 0.3 over JSON-RPC, REST and gRPC. Prints the ports of HTTP and gRPC when it is ready."""
import asyncio
import socket

import grpc
import uvicorn
from a2a.compat.v0_3 import a2a_v0_3_pb2_grpc
from a2a.compat.v0_3.grpc_handler import CompatGrpcHandler
from a2a.helpers.proto_helpers import new_task_from_user_message, new_text_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler, GrpcHandler
from a2a.server.routes import (
    create_agent_card_routes,
    create_jsonrpc_routes,
    create_rest_routes,
)
from a2a.server.tasks import (
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.types import a2a_pb2_grpc
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
)
from starlette.applications import Starlette


class Weather(AgentExecutor):
    """Completes each task, except for those with the text `wait`, which run until they are canceled."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        task = context.current_task or new_task_from_user_message(context.message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        if context.get_user_input() == "wait":
            await asyncio.Event().wait()
        await updater.complete(new_text_message("Sunny. ☀"))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def card_of(http: int, grpc_port: int) -> AgentCard:
    base = f"http://127.0.0.1:{http}"
    addresses = {
        "JSONRPC": f"{base}/rpc",
        "HTTP+JSON": f"{base}/rest",
        "GRPC": f"127.0.0.1:{grpc_port}",
    }
    return AgentCard(
        name="weather",
        description="Knows the weather.",
        version="1.0.0",
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding=binding, protocol_version=version)
            for binding, url in addresses.items()
            for version in ("1.0", "0.3")
        ],
        capabilities=AgentCapabilities(
            streaming=True, push_notifications=True, extended_agent_card=True
        ),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="s", name="Forecast", description="Forecasts.", tags=["w"])],
    )


async def main() -> None:
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    http = listening.getsockname()[1]
    server = grpc.aio.server()
    grpc_port = server.add_insecure_port("127.0.0.1:0")
    card = card_of(http, grpc_port)
    extended = AgentCard()
    extended.CopyFrom(card)
    extended.name = "weather, extended"
    handler = DefaultRequestHandler(
        agent_executor=Weather(),
        task_store=InMemoryTaskStore(),
        agent_card=card,
        push_config_store=InMemoryPushNotificationConfigStore(),
        extended_agent_card=extended,
    )
    a2a_pb2_grpc.add_A2AServiceServicer_to_server(GrpcHandler(handler), server)
    a2a_v0_3_pb2_grpc.add_A2AServiceServicer_to_server(CompatGrpcHandler(handler), server)
    await server.start()
    routes = [
        *create_agent_card_routes(card),
        *create_jsonrpc_routes(handler, "/rpc", enable_v0_3_compat=True),
        *create_rest_routes(handler, path_prefix="/rest", enable_v0_3_compat=True),
    ]
    config = uvicorn.Config(Starlette(routes=routes), log_level="warning")
    serving = asyncio.create_task(uvicorn.Server(config).serve(sockets=[listening]))
    print(http, grpc_port, flush=True)
    await serving


asyncio.run(main())
