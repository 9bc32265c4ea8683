/** A2A agents of the official SDK: both versions of the protocol, over JSON-RPC and HTTP+JSON. */
import { createServer, type RequestListener } from 'node:http'
import { createRequire } from 'node:module'
import {
  type AgentCard,
  generateAgentCardSignature,
  Role,
  type StreamResponse,
  type Task,
  TaskState,
} from '@a2a-js/sdk'
import {
  AgentEvent,
  type AgentExecutor,
  DefaultRequestHandler,
  InMemoryPushNotificationStore,
  InMemoryTaskStore,
} from '@a2a-js/sdk/server'
import { agentCardHandler, jsonRpcHandler, restHandler } from '@a2a-js/sdk/server/express'
import { A2AService, grpcService } from '@a2a-js/sdk/server/grpc'
import { Server, ServerCredentials } from '@grpc/grpc-js'
import type { JWK } from 'jose'
import { useFixture, useListening } from './fixture.ts'

type Handler = (...args: never[]) => unknown
interface App {
  use(path: string, handler: Handler): void
  get(path: string, handler: Handler): void
}
const express = createRequire(import.meta.url)('express') as () => App & RequestListener

export interface Agent {
  readonly port: number
  /** Requests that the agent has received, in order. */
  readonly received: { readonly method: string; readonly url: string; readonly headers: Headers }[]
  /** Lets the task of a stream continue. */
  proceed(): void
}

type Headers = Readonly<Record<string, string | string[] | undefined>>

export interface AgentOptions {
  readonly description?: () => string
  readonly sign?: { readonly key: JWK; readonly kid: string }
  /** Further interfaces of the card. */
  readonly interfaces?: readonly { readonly url: string; readonly protocolBinding: string }[]
}

/** Starts an agent before the tests of a file. Its tasks wait at `working` until `proceed` if the text is `wait`. */
export function useAgent(options: AgentOptions = {}): Agent {
  const received: Agent['received'] = []
  let proceed = () => {}
  const app = express()
  const server = createServer((request, response) => {
    const { method = '', url = '', headers } = request
    received.push({ method, url, headers })
    app(request, response)
  })
  const agent = useListening(server)
  const card = (): AgentCard => cardOf(`http://localhost:${agent.port}`, options)
  const executor = executorOf((waiting) => {
    proceed = waiting
  })
  const extended = () => ({ ...card(), name: 'Weather, extended' })
  const handler = new DefaultRequestHandler(
    cardOf('http://localhost:1', options),
    new InMemoryTaskStore(),
    executor,
    undefined,
    new InMemoryPushNotificationStore(),
    undefined,
    async () => extended(),
  )
  const shared = {
    requestHandler: handler,
    userBuilder: async () => ({ isAuthenticated: true, userName: 'ann' }),
    legacyCompat: { enabled: true },
  }
  const signed = async () => {
    const { sign } = options
    if (sign === undefined) return card()
    const alg = sign.key.alg ?? 'ES256'
    const generate = generateAgentCardSignature(sign.key, { alg, kid: sign.kid, typ: 'JOSE' })
    return generate(card())
  }
  app.use(
    '/.well-known/agent-card.json',
    agentCardHandler({ agentCardProvider: signed, legacyCompat: { enabled: true } }) as Handler,
  )
  app.use('/a2a/rpc', jsonRpcHandler(shared) as Handler)
  app.use('/a2a/rest', restHandler(shared) as Handler)
  return {
    get port() {
      return agent.port
    },
    received,
    proceed: () => proceed(),
  }
}

/** An agent of version 1.0 over gRPC. */
export const useGrpcAgent = (): { readonly port: number } =>
  useFixture(async () => {
    const requestHandler = new DefaultRequestHandler(
      cardOf('http://localhost:1', {
        interfaces: [{ url: 'localhost:1', protocolBinding: 'GRPC' }],
      }),
      new InMemoryTaskStore(),
      executorOf((proceed) => proceed()),
      undefined,
      new InMemoryPushNotificationStore(),
    )
    const server = new Server()
    const userBuilder = async () => ({ isAuthenticated: true, userName: 'ann' })
    server.addService(A2AService, grpcService({ requestHandler, userBuilder }))
    const port = await new Promise<number>((resolve, reject) =>
      server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
        error === null ? resolve(bound) : reject(error),
      ),
    )
    return { port, close: () => server.forceShutdown() }
  })

function cardOf(base: string, { description, interfaces = [] }: AgentOptions): AgentCard {
  const entry = (url: string, protocolBinding: string, protocolVersion: string) => ({
    url,
    protocolBinding,
    protocolVersion,
    tenant: '',
  })
  return {
    name: 'Weather',
    description: description?.() ?? 'Knows the weather.',
    version: '1.0.0',
    provider: undefined,
    supportedInterfaces: [
      entry(`${base}/a2a/rpc`, 'JSONRPC', '1.0'),
      entry(`${base}/a2a/rest`, 'HTTP+JSON', '1.0'),
      entry(`${base}/a2a/rpc`, 'JSONRPC', '0.3'),
      entry(`${base}/a2a/rest`, 'HTTP+JSON', '0.3'),
      ...interfaces.map((one) => entry(one.url, one.protocolBinding, '1.0')),
    ],
    capabilities: {
      streaming: true,
      pushNotifications: true,
      extensions: [],
      extendedAgentCard: true,
    },
    securitySchemes: {},
    securityRequirements: [],
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [
      {
        id: 'forecast',
        name: 'Forecast',
        description: 'Forecasts.',
        tags: ['weather'],
        examples: [],
        inputModes: [],
        outputModes: [],
        securityRequirements: [],
      },
    ],
    signatures: [],
  }
}

function executorOf(onWait: (proceed: () => void) => void): AgentExecutor {
  return {
    async execute({ taskId, contextId, userMessage }, bus) {
      const state = (value: TaskState) => ({
        state: value,
        message: undefined,
        timestamp: undefined,
      })
      const task: Task = {
        id: taskId,
        contextId,
        status: state(TaskState.TASK_STATE_SUBMITTED),
        artifacts: [],
        history: [userMessage],
        metadata: {},
      }
      const update = (value: TaskState) =>
        bus.publish(
          AgentEvent.statusUpdate({ taskId, contextId, status: state(value), metadata: {} }),
        )
      bus.publish(AgentEvent.task(task))
      update(TaskState.TASK_STATE_WORKING)
      const [part] = userMessage.parts
      if (part?.content?.$case === 'text' && part.content.value === 'wait') {
        await new Promise<void>(onWait)
      }
      update(TaskState.TASK_STATE_COMPLETED)
      bus.finished()
    },
    async cancelTask() {},
  }
}

/** A message of a user. */
export const userMessage = (text: string, more: object = {}) => ({
  tenant: '',
  message: {
    messageId: `m-${text}`,
    contextId: '',
    taskId: '',
    role: Role.ROLE_USER,
    parts: [
      {
        content: { $case: 'text' as const, value: text },
        metadata: {},
        filename: '',
        mediaType: '',
      },
    ],
    metadata: {},
    extensions: [],
    referenceTaskIds: [],
  },
  configuration: undefined,
  metadata: {},
  ...more,
})

/** The state that an event of a stream reports. */
export function stateIn({ payload }: StreamResponse): TaskState | undefined {
  if (payload?.$case === 'task' || payload?.$case === 'statusUpdate') {
    return payload.value.status?.state
  }
  return undefined
}
