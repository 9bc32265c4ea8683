/** Sends a case to a proxy, and lists what its client and its server saw, part by part. */
import { frameTypes } from '../../src/engines/http/http2/frames.ts'
import { type Asked, type ReadMessage, readResponse } from '../protocol/strict-reader.ts'
import { RawConnection } from '../proxy/engine-rig.ts'
import { data, endHeaders, endStream, FrameClient, headers } from '../proxy/frame-client.ts'
import { type Case, fieldsOf, type Http1Case, type Http2Case, requestText } from './case.ts'
import { probePath, type RecordingServer } from './recording-server.ts'

/** Parts by name, such as `response.status` or `request.field.host`. A part that is absent has no entry. */
export type Observation = ReadonlyMap<string, string>

/** How long a client waits for what comes next, unless its case says otherwise. */
const patienceMs = 2_500

/** Fields that state the end of a body; how it ends is a part of its own. */
const framing = new Set(['content-length', 'transfer-encoding'])
/** Fields of responses that say whether the connection is kept, which is tried, and the time. */
const ofConnections = new Set(['connection', 'keep-alive', 'date'])

export async function observe(
  one: Case,
  port: number,
  server: RecordingServer,
): Promise<Observation> {
  server.prepare(one)
  const parts = new Map<string, string>()
  if ('fields' in one) await overHttp2(one, port, parts)
  else await overHttp1(one, port, parts)
  listRequests(server, parts)
  return parts
}

/** Whether it became true in time. */
async function inTime(condition: Promise<void>, limitMs = patienceMs): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), limitMs)
  })
  return Promise.race([condition.then(() => true), late]).finally(() => clearTimeout(timer))
}

function listRequests(server: RecordingServer, parts: Map<string, string>): void {
  const { requests, malformed } = server
  parts.set('requests', `${requests.length}`)
  if (malformed.length > 0) parts.set('request.malformed', malformed.join('; ').slice(0, 120))
  const [request] = requests
  if (request === undefined) return
  parts.set('request.line', request.startLine)
  listMessage('request', request, parts)
  for (const [name, values] of request.fields) {
    if (!framing.has(name)) parts.set(`request.field.${name}`, values.join(' | '))
  }
}

function listMessage(side: string, message: ReadMessage, parts: Map<string, string>): void {
  const { content, fields, trailers } = message
  const [length] = fields.get('content-length') ?? []
  const coding = fields.get('transfer-encoding')
  parts.set(`${side}.framing`, coding?.join(' | ') ?? (length === undefined ? 'none' : 'length'))
  if (length !== undefined && Number(length) !== content.length) {
    parts.set(`${side}.length`, length)
  }
  if (content !== '') parts.set(`${side}.content`, content.slice(0, 80))
  if (trailers.length > 0) parts.set(`${side}.trailers`, trailers.join(' | ').toLowerCase())
}

async function overHttp1(one: Http1Case, port: number, parts: Map<string, string>): Promise<void> {
  const client = await RawConnection.connect(port)
  try {
    client.write(Buffer.from(one.send, 'latin1'))
    const first = await readFirst(client, one, parts)
    if (first === undefined) return
    const isPast = first.end === undefined || first.closes || client.ended
    let from = first.end ?? client.text.length
    for (let count = 1; count < (one.responses ?? 1) && !isPast; count++) {
      const next = await readNext(client, from, { method: 'GET', minor: 1 })
      parts.set(`response.${count + 1}`, next === undefined ? 'none' : `${next.status}`)
      from = next?.end ?? client.text.length
    }
    parts.set('connection', isPast ? 'closed' : await probe(client, from))
  } catch (error) {
    parts.set('response.malformed', (error as Error).message.replace(/ in ".*$/s, ''))
    parts.set('response.start', client.text.slice(0, client.text.indexOf('\r\n') + 1 || 40).trim())
  } finally {
    client.socket.destroy()
  }
}

/** What the request line says; bytes that are no request are read as a GET. */
function askedBy(send: string): Asked {
  const [, method = 'GET', version] = /^(\S+) \S+ (HTTP\/1\.0)?/.exec(send) ?? []
  return { method, minor: version === undefined ? 1 : 0 }
}

async function readFirst(
  client: RawConnection,
  one: Http1Case,
  parts: Map<string, string>,
): Promise<ReadMessage | undefined> {
  if (one.thenSend !== undefined) await sendRest(client, one, parts)
  const asked = askedBy(one.send)
  const found = await readNext(client, 0, asked)
  // Some proxies answer with the version of the request.
  if (client.text.startsWith('HTTP/1.0')) parts.set('response.version', '1.0')
  if (found !== undefined) {
    listResponse(found, parts, asked.method)
    return found
  }
  parts.set('response.status', client.text === '' ? endOf(client) : `part, then ${endOf(client)}`)
  if (client.text !== '') listPart(client.text, parts)
  return undefined
}

const endOf = (client: RawConnection): string => {
  if (client.ended) return 'closed'
  return client.closed ? 'reset' : 'nothing'
}

/** The status of a response that is cut off. */
function listPart(text: string, parts: Map<string, string>): void {
  const [line = ''] = text.split('\r\n')
  parts.set('response.start', line)
  const head = text.indexOf('\r\n\r\n')
  if (head >= 0) parts.set('response.part', text.slice(head + 4, head + 84))
}

/** Sends the body once the client may. */
async function sendRest(
  client: RawConnection,
  { thenSend = '', patienceMs: limitMs }: Http1Case,
  parts: Map<string, string>,
): Promise<void> {
  await inTime(
    client.until(() => client.text.includes('\r\n\r\n') || client.ended || client.closed),
    limitMs,
  )
  const isAsked = client.text.startsWith('HTTP/1.1 100')
  parts.set('client.sends-the-body', isAsked ? 'after 100' : 'never')
  if (isAsked) client.write(thenSend)
}

async function readNext(
  client: RawConnection,
  from: number,
  asked: Asked,
): Promise<ReadMessage | undefined> {
  let found: ReadMessage | undefined
  await inTime(
    client.until(() => {
      const isOver = client.ended || client.closed
      const text = client.text.replace(/^HTTP\/1\.0/, 'HTTP/1.1')
      found = readResponse(text, from, asked, isOver)
      return found !== undefined || isOver
    }),
  )
  return found
}

async function probe(client: RawConnection, from: number): Promise<string> {
  client.write(requestText({ path: probePath }))
  const second = await readNext(client, from, { method: 'GET', minor: 1 })
  return second?.content === 'probe' ? 'kept' : `lost (${second?.status ?? endOf(client)})`
}

function listResponse(message: ReadMessage, parts: Map<string, string>, method: string): void {
  const { status, fields, interim, startLine } = message
  parts.set('response.status', `${status}`)
  if (interim.length > 0) {
    parts.set(
      'response.interim',
      interim.map((lines) => lines.join(' | ').toLowerCase()).join('; '),
    )
  }
  const isOfServer = fields.has('x-from')
  parts.set('response.from', isOfServer ? 'the server' : 'the proxy')
  // Proxies word their own responses differently; what they do is compared, not their words.
  const kept = isOfServer ? undefined : new Set(['location', 'allow', 'retry-after'])
  for (const [name, values] of fields) {
    if (framing.has(name) || ofConnections.has(name)) continue
    if (kept === undefined || kept.has(name)) {
      parts.set(`response.field.${name}`, values.join(' | '))
    }
  }
  if (!isOfServer) return
  if (method !== 'HEAD' && status !== 304) listMessage('response', message, parts)
  else parts.set('response.length', fields.get('content-length')?.join(' | ') ?? 'none')
  const reason = startLine.slice('HTTP/1.1 200 '.length)
  if (reason !== '') parts.set('response.reason', reason)
}

async function overHttp2(one: Http2Case, port: number, parts: Map<string, string>): Promise<void> {
  const client = await FrameClient.connect(port)
  try {
    const { fields, body, trailers } = one
    client.send(headers(1, fields, endHeaders | (body === undefined ? endStream : 0)))
    if (body !== undefined) client.send(data(1, body, trailers === undefined ? endStream : 0))
    if (trailers !== undefined) client.send(headers(1, trailers))
    await inTime(client.until(() => isOver(client, 1) || client.connection.ended))
    listStream(client, parts)
    client.send(headers(3, fieldsOf('GET', probePath)))
    await inTime(client.until(() => isOver(client, 3) || client.connection.ended))
    const isServed = client.headsOf(3).at(-1)?.includes(':status: 200') === true
    parts.set('connection', isServed ? 'kept' : 'closed')
  } finally {
    client.connection.socket.destroy()
  }
}

const ends = (type: number) =>
  type === frameTypes.headers || type === frameTypes.data || type === frameTypes.rstStream

function isOver({ frames }: FrameClient, stream: number): boolean {
  return frames.some(
    (frame) =>
      frame.type === frameTypes.goaway ||
      (frame.stream === stream &&
        ends(frame.type) &&
        (frame.type === frameTypes.rstStream || (frame.flags & endStream) !== 0)),
  )
}

function listStream(client: FrameClient, parts: Map<string, string>): void {
  const { frames } = client
  const heads = client.headsOf(1)
  const statusOf = (head: readonly string[]) => head[0]?.replace(':status: ', '') ?? ''
  const interim = heads.filter((head) => statusOf(head).startsWith('1'))
  const [final, trailers] = heads.filter((head) => !statusOf(head).startsWith('1'))
  const reset = frames.find(({ type, stream }) => type === frameTypes.rstStream && stream === 1)
  const goaway = frames.find(({ type }) => type === frameTypes.goaway)
  if (interim.length > 0) parts.set('response.interim', interim.map(String).join('; '))
  if (reset !== undefined) parts.set('stream.reset', `${reset.payload.readUInt32BE(0)}`)
  if (goaway !== undefined) parts.set('connection.goaway', `${goaway.payload.readUInt32BE(4)}`)
  parts.set('response.status', final === undefined ? 'none' : statusOf(final))
  if (final === undefined) return
  const isOfServer = final.includes('x-from: server')
  parts.set('response.from', isOfServer ? 'the server' : 'the proxy')
  const location = final.find((line) => line.startsWith('location: '))
  if (location !== undefined) parts.set('response.field.location', location.slice(10))
  if (!isOfServer) return
  for (const line of final.slice(1)) {
    const at = line.indexOf(': ')
    const name = line.slice(0, at)
    if (name !== 'date') parts.set(`response.field.${name}`, line.slice(at + 2))
  }
  const content = frames
    .filter(({ type, stream }) => type === frameTypes.data && stream === 1)
    .map(({ payload }) => payload.toString('latin1'))
  if (content.join('') !== '') parts.set('response.content', content.join('').slice(0, 80))
  if (trailers !== undefined) parts.set('response.trailers', trailers.join(' | '))
}
