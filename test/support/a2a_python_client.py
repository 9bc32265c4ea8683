"""Uses an agent by each binding of both versions, and prints as JSON what it got. Arguments: URL of the agent, address of gRPC."""
import asyncio
import json
import sys
from uuid import uuid4

import grpc
import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types.a2a_pb2 import (
    AgentCard,
    AgentInterface,
    CancelTaskRequest,
    GetExtendedAgentCardRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import A2AError

url, grpc_address = sys.argv[1:]


def state_of(event) -> str:
    status = event.task.status if event.HasField("task") else event.status_update.status
    return TaskState.Name(status.state).removeprefix("TASK_STATE_").lower()


def message(text: str) -> SendMessageRequest:
    parts = [Part(text=text)]
    return SendMessageRequest(
        message=Message(message_id=str(uuid4()), role=Role.ROLE_USER, parts=parts)
    )


async def result_of(call, read=str):
    """What `read` returns for the result, or the error."""
    try:
        return read(await call)
    except A2AError as error:
        return f"{type(error).__name__}: {error}".replace(url, "/")


async def use(card: AgentCard, interface: AgentInterface, http: httpx.AsyncClient) -> dict:
    only = AgentCard()
    only.CopyFrom(card)
    del only.supported_interfaces[:]
    only.supported_interfaces.append(interface)

    def client_of(streaming: bool):
        return ClientFactory(
            ClientConfig(
                streaming=streaming,
                httpx_client=http,
                grpc_channel_factory=grpc.aio.insecure_channel,
                supported_protocol_bindings=[interface.protocol_binding],
            )
        ).create(only)

    client = client_of(True)
    found: dict = {}
    found["stream"] = [state_of(event) async for event in client.send_message(message("hello"))]
    async for event in client_of(False).send_message(message("hello")):
        found["message"] = state_of(event)
        done = event.task
    found["text"] = done.status.message.parts[0].text
    found["task"] = (await client.get_task(GetTaskRequest(id=done.id))).id == done.id
    found["unknown"] = await result_of(client.get_task(GetTaskRequest(id="none")))
    states = []
    async for event in client.send_message(message("wait")):
        states.append(state_of(event))
        if event.HasField("task"):
            running = event.task.id
        if states[-1] == "working":
            break
    again = client.subscribe(SubscribeToTaskRequest(id=running))
    states.append(state_of(await anext(again)))
    canceled = await client.cancel_task(CancelTaskRequest(id=running))
    states.append(TaskState.Name(canceled.status.state))
    found["canceled"] = states
    if interface.protocol_version == "1.0":
        found["listed"] = await result_of(
            client.list_tasks(ListTasksRequest(context_id=done.context_id)),
            lambda listed: [task.id == done.id for task in listed.tasks],
        )
    extended = client.get_extended_agent_card(GetExtendedAgentCardRequest())
    found["extended"] = await result_of(extended, lambda one: one.name)

    def push(target: str):
        return client.create_task_push_notification_config(
            TaskPushNotificationConfig(id="c", task_id=done.id, url=target)
        )

    found["push"] = (await push("https://93.184.215.14/hook")).url
    found["inner"] = await result_of(push("https://169.254.169.254/"), lambda one: one.url)
    return found


async def main() -> None:
    async with httpx.AsyncClient(timeout=60) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        found = {}
        for version in ("1.0", "0.3"):
            for binding in ("JSONRPC", "HTTP+JSON", "GRPC"):
                named = [
                    one
                    for one in card.supported_interfaces
                    if (one.protocol_binding, one.protocol_version) == (binding, version)
                ]
                interface = (
                    AgentInterface(
                        url=grpc_address, protocol_binding=binding, protocol_version=version
                    )
                    if binding == "GRPC"
                    else named[0]
                )
                found[f"{binding} {version}"] = await use(card, interface, http)
        print(json.dumps(found))


asyncio.run(main())
