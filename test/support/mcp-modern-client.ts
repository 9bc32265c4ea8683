/** A client of revision 2026-07-28 without an SDK, which may break the protocol. */
type Json = Record<string, unknown>

const prefix = 'io.modelcontextprotocol/'

export const envelope: Json = {
  [`${prefix}protocolVersion`]: '2026-07-28',
  [`${prefix}clientInfo`]: { name: 'raw', version: '1' },
  [`${prefix}clientCapabilities`]: {},
}

/** Makes a request with a complete envelope. */
export function modernRequest(
  method: string,
  params: Json = {},
  { id = 1, meta = {} }: { id?: string | number; meta?: Json } = {},
): Json {
  return { jsonrpc: '2.0', id, method, params: { ...params, _meta: { ...envelope, ...meta } } }
}

/** The headers that the revision demands of a request. */
export function modernHeaders({ method, params }: Json): Record<string, string> {
  const { name, uri } = (params ?? {}) as { name?: unknown; uri?: unknown }
  const named = ['tools/call', 'prompts/get', 'resources/read'].includes(String(method))
  return {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': String(method),
    ...(named && { 'mcp-name': String(name ?? uri) }),
  }
}

export interface ModernResponse {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** All messages, in order; the response, if any, is the last one. */
  readonly messages: readonly Json[]
  readonly message: Json | undefined
}

/** `undefined` as the value of a header removes it. */
export type HeaderChanges = Readonly<Record<string, string | undefined>>

/** Sends a message. `body` replaces the text of the message, which still decides the headers. */
export async function sendModern(
  url: string,
  message: Json,
  { headers = {}, body }: { headers?: HeaderChanges; body?: string } = {},
): Promise<ModernResponse> {
  const all = Object.entries({ ...modernHeaders(message), ...headers })
  const sent = all.filter((pair): pair is [string, string] => pair[1] !== undefined)
  const text = body ?? JSON.stringify(message)
  const response = await fetch(url, { method: 'POST', headers: sent, body: text })
  return readResponse(response)
}

async function readResponse(response: Response): Promise<ModernResponse> {
  const { status, headers } = response
  const text = await response.text()
  const type = headers.get('content-type') ?? ''
  const isStream = type.startsWith('text/event-stream')
  const texts = isStream
    ? text.split('\n').flatMap((line) => (line.startsWith('data: ') ? [line.slice(6)] : []))
    : text.startsWith('{')
      ? [text]
      : []
  const messages = texts.map((one) => JSON.parse(one) as Json)
  return { status, headers, text, messages, message: messages.at(-1) }
}

/** An open stream of messages. */
export interface ModernStream {
  readonly messages: Json[]
  /** Resolves at the end of the stream: to false if the connection broke, or was closed here. */
  readonly ended: Promise<boolean>
  close(): void
}

/** Sends a request whose response is a stream, and keeps the stream open. */
export async function openModern(
  url: string,
  message: Json,
  controller = new AbortController(),
): Promise<ModernStream> {
  const response = await fetch(url, {
    method: 'POST',
    headers: modernHeaders(message),
    body: JSON.stringify(message),
    signal: controller.signal,
  })
  if (response.body === null || response.status !== 200) {
    throw new Error(`the stream was answered ${response.status}: ${await response.text()}`)
  }
  const messages: Json[] = []
  return {
    messages,
    ended: collect(response.body, messages),
    close: () => controller.abort(),
  }
}

async function collect(body: ReadableStream<Uint8Array>, messages: Json[]): Promise<boolean> {
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for await (const chunk of body) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        if (line.startsWith('data: ')) messages.push(JSON.parse(line.slice(6)) as Json)
      }
    }
    return true
  } catch {
    return false
  }
}
