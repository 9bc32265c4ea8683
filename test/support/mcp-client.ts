/** SDK clients and manifests for tests of MCP backends. */
import { Client, type ClientOptions } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { waitFor } from './wait-for.ts'

type Transport = Parameters<Client['connect']>[0]

/** A client of the official SDK that is connected over streamable HTTP. */
export async function connectClient(
  port: number,
  path: string,
  options: ClientOptions = {},
  headers: Readonly<Record<string, string>> = {},
  address = '127.0.0.1',
): Promise<Client> {
  const client = new Client({ name: 'test', version: '1.0.0' }, options)
  const url = new URL(`http://${address}:${port}${path}`)
  const transport = new StreamableHTTPClientTransport(url, { requestInit: { headers } })
  await client.connect(transport as Transport)
  return client
}

/** A Gateway on the port, and for each backend a route of its own: `/name`. JSON is YAML. */
export function mcpManifests(
  port: number,
  backends: Readonly<Record<string, object>>,
  others: readonly object[] = [],
): string {
  const objects: object[] = [
    {
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'Gateway',
      metadata: { name: 'edge' },
      spec: {
        gatewayClassName: 'agentgateway',
        listeners: [{ name: 'http', port, protocol: 'HTTP' }],
      },
    },
    ...others,
  ]
  for (const [name, mcp] of Object.entries(backends)) {
    objects.push(
      {
        apiVersion: 'sluice.dev/v1alpha1',
        kind: 'GatewayBackend',
        metadata: { name },
        spec: { mcp },
      },
      {
        apiVersion: 'gateway.networking.k8s.io/v1',
        kind: 'HTTPRoute',
        metadata: { name },
        spec: {
          parentRefs: [{ name: 'edge' }],
          rules: [
            {
              matches: [{ path: { value: `/${name}` } }],
              backendRefs: [{ group: 'sluice.dev', kind: 'GatewayBackend', name }],
            },
          ],
        },
      },
    )
  }
  return objects.map((one) => JSON.stringify(one)).join('\n---\n')
}

/** What a client that reads bytes itself gets. */
export interface RawAnswer {
  readonly status: number
  readonly headers: Headers
  /** All messages, in order; the answer, if any, is the last one. */
  readonly messages: readonly unknown[]
  readonly message: unknown
}

/** A session of a client that may break the protocol. */
export interface McpSession {
  readonly id: string
  /** `text` is sent as it is. */
  send(
    port: number | string,
    message: object | string,
    headers?: Readonly<Record<string, string>>,
  ): Promise<RawAnswer>
  /** Reads a stream, of a message or of a GET, to its end or until a condition holds. */
  stream(
    port: number | string,
    what: {
      readonly post?: object
      /** Id of the last event. */
      readonly from?: string
      readonly until?: () => boolean
    },
  ): Promise<{ readonly status: number; readonly text: string }>
  /** Ends it; gives the status. */
  end(port: number | string): Promise<number>
  /** The same with another id, or none. */
  as(id: string | undefined): McpSession
  /** The same id at another path. */
  at(path: string): McpSession
}

/** The URL for a port of this machine, or for `host:port`. */
const urlOf = (port: number | string, path: string): string =>
  `http://${typeof port === 'number' ? `127.0.0.1:${port}` : port}${path}`

function sessionOf(path: string, id: string | undefined): McpSession {
  const own = { ...(id !== undefined && { 'mcp-session-id': id }) }
  return {
    id: id ?? '',
    send: async (port, message, headers = {}) => {
      const response = await fetch(urlOf(port, path), {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          ...own,
          ...headers,
        },
        body: typeof message === 'string' ? message : JSON.stringify(message),
      })
      return rawAnswer(response)
    },
    stream: async (port, { post, from, until }) => {
      const response = await fetch(urlOf(port, path), {
        method: post === undefined ? 'GET' : 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          ...own,
          ...(from !== undefined && { 'last-event-id': from }),
        },
        ...(post !== undefined && { body: JSON.stringify(post) }),
      })
      return { status: response.status, text: await readUntil(response, until) }
    },
    end: async (port) => {
      return (await fetch(urlOf(port, path), { method: 'DELETE', headers: own })).status
    },
    as: (other) => sessionOf(path, other),
    at: (other) => sessionOf(other, id),
  }
}

async function readUntil(response: Response, until: (() => boolean) | undefined): Promise<string> {
  const reader = response.body?.getReader()
  let text = ''
  const read = async () => {
    for (;;) {
      const piece = await reader?.read()
      if (piece?.value === undefined) return
      text += Buffer.from(piece.value).toString()
    }
  }
  const whole = read()
  await (until === undefined ? whole : waitFor('the end of the stream', until))
  await reader?.cancel()
  return text
}

async function rawAnswer(response: Response): Promise<RawAnswer> {
  const { status, headers } = response
  const text = await response.text()
  const type = headers.get('content-type') ?? ''
  const texts = type.startsWith('text/event-stream')
    ? text.split('\n').flatMap((line) => (line.startsWith('data: {') ? [line.slice(6)] : []))
    : type.startsWith('application/json') && text !== ''
      ? [text]
      : []
  const messages = texts.map((one) => JSON.parse(one) as unknown)
  return { status, headers, messages, message: messages.at(-1) }
}

/** Begins a session without an SDK. */
export async function rawSession(
  port: number | string,
  path: string,
  version = '2025-06-18',
): Promise<McpSession> {
  const params = {
    protocolVersion: version,
    capabilities: {},
    clientInfo: { name: 'raw', version: '1' },
  }
  const begin = { jsonrpc: '2.0', id: 0, method: 'initialize', params }
  const { headers, status } = await sessionOf(path, undefined).send(port, begin)
  if (status !== 200) throw new Error(`initialize was answered ${status}`)
  const session = sessionOf(path, headers.get('mcp-session-id') ?? undefined)
  await session.send(port, { jsonrpc: '2.0', method: 'notifications/initialized' })
  return session
}
