/** Requests through a data plane whose policies change statuses and bodies, read strictly at both ends. */
import assert from 'node:assert/strict'
import { createServer, type Http2Server } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { errorCodes, frameTypes } from '../../src/engines/http/http2/frames.ts'
import type { Resource } from '../../src/ground/model/resources.ts'
import { RawConnection, RawUpstream } from '../proxy/engine-rig.ts'
import { data, endHeaders, endStream, FrameClient, headers } from '../proxy/frame-client.ts'
import { startRig } from '../proxy/plane-rig.ts'
import { fieldsOf, startExtProcServer } from '../support/ext-proc-server.ts'
import type { FramingCase } from './framing-cases.ts'
import { next, resourcesOf } from './framing-resources.ts'
import { type ReadMessage, readRequest, readResponse } from './strict-reader.ts'

const bodiless = new Set([204, 205, 304])

export interface FramingScene {
  /** Throws if a message is not as expected. */
  check(one: FramingCase): Promise<void>
  close(): Promise<void>
}

/** Reads requests strictly, one after the other, and answers each. */
class StrictUpstream {
  readonly raw: RawUpstream
  requests: ReadMessage[] = []
  failure: unknown
  answer: (request: ReadMessage, connection: RawConnection) => void = () => {}
  readonly #read = new Map<RawConnection, number>()

  constructor(raw: RawUpstream) {
    this.raw = raw
    raw.onData = (connection) => {
      try {
        this.#take(connection)
      } catch (error) {
        this.failure ??= error
        connection.socket.destroy()
      }
    }
  }

  #take(connection: RawConnection): void {
    for (;;) {
      const from = this.#read.get(connection) ?? 0
      const request = readRequest(connection.text, from)
      if (request?.end === undefined) return
      this.#read.set(connection, request.end)
      this.requests.push(request)
      this.answer(request, connection)
    }
  }

  /** Bytes behind the last request of any connection. */
  get hasLeft(): boolean {
    return this.raw.connections.some((one) => one.text.length > (this.#read.get(one) ?? 0))
  }

  clear(): void {
    this.requests = []
    this.failure = undefined
    for (const one of this.raw.connections) one.socket.destroy()
    this.raw.connections.length = 0
    this.#read.clear()
  }
}

export async function startFramingScene(): Promise<FramingScene> {
  const rig = await startRig()
  const upstream = new StrictUpstream(await RawUpstream.start())
  const mirrored = new StrictUpstream(await RawUpstream.start())
  mirrored.answer = (_request, connection) => {
    connection.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
  }
  let current: FramingCase | undefined
  let applied: ReadonlySet<Resource['key']> = new Set()
  const second = await startHttp2(() => current)
  const processor = await startExtProcServer((message, stream) => {
    const one = current
    if (one !== undefined) process(one, message, stream)
  })
  upstream.answer = (request, connection) => {
    if (current !== undefined) answerOf(current, request, connection)
  }
  return {
    async check(one) {
      current = one
      upstream.clear()
      mirrored.clear()
      const resources = resourcesOf(one, rig, {
        upstream: upstream.raw.address.port,
        second: (second.address() as AddressInfo).port,
        mirror: mirrored.raw.address.port,
        processor: processor.port,
      })
      const keys = new Set(resources.map(({ key }) => key))
      const { rejected } = rig.apply(
        resources,
        [...applied].filter((key) => !keys.has(key)),
      )
      assert.deepEqual(rejected, [])
      applied = keys
      if (one.client === '2') await checkHttp2(one, rig.port)
      else await checkHttp1(one, rig.port)
      for (const side of [upstream, mirrored]) {
        assert.equal(side.failure, undefined)
        assert.equal(side.hasLeft, false, 'bytes behind a request')
      }
      checkRequest(one, upstream.requests)
    },
    async close() {
      await rig.close()
      upstream.raw.close()
      mirrored.raw.close()
      processor.close()
      second.close()
    },
  }
}

function startHttp2(current: () => FramingCase | undefined): Promise<Http2Server> {
  const server = createServer()
  server.on('stream', (stream, { ':method': method }) => {
    stream.on('error', () => {})
    stream.resume()
    stream.on('end', () => {
      const one = current()
      if (one === undefined) return
      if (one.hasInterim === true) stream.additionalHeaders({ ':status': 103, link: '<a>' })
      const isBare = method === 'HEAD' || bodiless.has(one.status) || one.answer === ''
      const length = one.framing === 'length' && ![204, 205].includes(one.status)
      stream.respond(
        {
          ':status': one.status,
          ...(length && { 'content-length': Buffer.byteLength(one.answer) }),
        },
        { endStream: isBare },
      )
      if (!isBare) stream.end(one.answer)
    })
  })
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)))
}

function answerOf(one: FramingCase, request: ReadMessage, connection: RawConnection): void {
  const { status, answer, framing } = one
  const isBare =
    request.startLine.startsWith('HEAD ') || status === 204 || status === 304 || status === 101
  let text = one.hasInterim === true ? 'HTTP/1.1 103 Early\r\nlink: <a>\r\n\r\n' : ''
  text += `HTTP/1.1 ${status} Whatever\r\n`
  if (status === 101) text += 'connection: upgrade\r\nupgrade: websocket\r\n'
  else if (framing === 'length' && status !== 204) text += `Content-Length: ${answer.length}\r\n`
  else if (framing === 'chunked' && status !== 204) text += 'Transfer-Encoding: chunked\r\n'
  text += '\r\n'
  if (!isBare && framing !== 'chunked') text += answer
  else if (!isBare)
    text += `${answer === '' ? '' : `${answer.length.toString(16)}\r\n${answer}\r\n`}0\r\n\r\n`
  connection.write(text)
  if (framing === 'close' && !isBare) connection.socket.end()
}

const setting = (fields: Readonly<Record<string, string>>) => ({
  headerMutation: {
    setHeaders: Object.entries(fields).map(([key, value]) => ({
      header: { key, rawValue: Buffer.from(value) },
    })),
  },
})

function process(
  { by, newStatus, newAnswer }: FramingCase,
  { request }: Parameters<Parameters<typeof startExtProcServer>[0]>[0],
  stream: Parameters<Parameters<typeof startExtProcServer>[0]>[1],
): void {
  const { case: part, value } = request
  if (part === 'requestHeaders') stream.send({ response: { case: part, value: {} } })
  else if (part === 'requestBody' || part === 'responseBody') {
    const { body, endOfStream } = value
    const streamedResponse = { case: 'streamedResponse', value: { body, endOfStream } } as const
    const response = { bodyMutation: { mutation: streamedResponse } }
    stream.send({ response: { case: part, value: { response } } })
  } else if (part === 'responseHeaders') {
    assert.ok(fieldsOf(value)[':status'])
    if (by === 'immediate') {
      const status = { code: newStatus ?? 200 }
      const body = Buffer.from(newAnswer ?? '')
      stream.send({ response: { case: 'immediateResponse', value: { status, body } } })
      return
    }
    const mutation = newStatus === undefined ? {} : setting({ ':status': `${newStatus}` })
    const instead = newAnswer !== undefined && {
      status: 1,
      bodyMutation: { mutation: { case: 'body' as const, value: Buffer.from(newAnswer) } },
    }
    stream.send({ response: { case: part, value: { response: { ...mutation, ...instead } } } })
  } else if (part !== undefined) stream.send({ response: { case: part, value: {} } } as never)
}

const forwardedMethod = ({ method, newMethod = method }: FramingCase) =>
  newMethod === 'CONNECT' ? method : newMethod

/** What the client must get. */
function expectedOf(one: FramingCase): { status: number; content: string } {
  const method = forwardedMethod(one)
  const isChanged = one.by !== undefined
  const always = one.by === 'direct' || one.by === 'immediate'
  const status = (isChanged ? one.newStatus : undefined) ?? (always ? 200 : one.status)
  const isEmpty = [101, 204, 304, ...(one.upstream === '2' ? [205] : [])].includes(one.status)
  const came = method === 'HEAD' || isEmpty ? '' : one.answer
  const changed = one.newAnswer ?? (always ? '' : undefined)
  const content = (isChanged ? changed : undefined) ?? came
  const isBare = one.method === 'HEAD' || bodiless.has(status)
  return { status, content: isBare ? '' : content }
}

async function checkHttp1(one: FramingCase, port: number): Promise<void> {
  const expected = expectedOf(one)
  const client = await RawConnection.connect(port)
  const minor = one.client === '1.1' ? 1 : 0
  try {
    client.write(requestText(one, minor))
    const read = async (from: number, method: string) => {
      let found: ReadMessage | undefined
      await client.until(() => {
        const isOver = client.ended || client.closed
        found = readResponse(client.text, from, { method, minor }, isOver)
        return found !== undefined || isOver
      })
      return found ?? assert.fail(`no response in ${JSON.stringify(client.text.slice(from))}`)
    }
    const first = await read(0, one.method)
    assert.equal(first.status, expected.status, first.content)
    assert.equal(first.content, expected.content)
    if (first.end === undefined) return
    if (first.closes) {
      await client.untilEnd()
      assert.equal(client.text.length, first.end, `bytes behind ${JSON.stringify(client.text)}`)
      return
    }
    client.write(`GET /next HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n`)
    const second = await readNext(client, first.end)
    assert.equal(second.content, next)
    await client.untilEnd()
    assert.equal(client.text.length, second.end, `bytes behind ${JSON.stringify(client.text)}`)
  } finally {
    client.socket.destroy()
  }
}

async function readNext(client: RawConnection, from: number): Promise<ReadMessage> {
  let found: ReadMessage | undefined
  await client.until(() => {
    const isOver = client.ended || client.closed
    found = readResponse(client.text, from, { method: 'GET', minor: 1 }, isOver)
    return found !== undefined || isOver
  })
  return found ?? assert.fail(`no next response in ${JSON.stringify(client.text.slice(from))}`)
}

function requestText(one: FramingCase, minor: number): string {
  let text = `${one.method} /case HTTP/1.${minor}\r\nHost: a.test\r\n`
  if (one.client === '1.0 kept') text += 'Connection: keep-alive\r\n'
  if (one.asksUpgrade && minor === 1 && one.body === undefined)
    text += 'Connection: upgrade\r\nUpgrade: websocket\r\n'
  const { body } = one
  if (body === undefined) return `${text}\r\n`
  if (one.isChunked !== true || minor === 0)
    return `${text}Content-Length: ${body.length}\r\n\r\n${body}`
  const chunk = body === '' ? '' : `${body.length.toString(16)}\r\n${body}\r\n`
  return `${text}Transfer-Encoding: chunked\r\n\r\n${chunk}0\r\n\r\n`
}

async function checkHttp2(one: FramingCase, port: number): Promise<void> {
  const expected = expectedOf(one)
  const client = await FrameClient.connect(port)
  try {
    const fields = (method: string, path: string) => [
      [':method', method] as const,
      [':scheme', 'http'] as const,
      [':authority', 'a.test'] as const,
      [':path', path] as const,
    ]
    const { body } = one
    client.send(headers(1, fields(one.method, '/case'), body === undefined ? 5 : endHeaders))
    if (body !== undefined) client.send(data(1, body, endStream))
    await client.find(
      ({ stream, flags, type }) =>
        stream === 1 && (type === frameTypes.rstStream || (type < 2 && (flags & endStream) !== 0)),
    )
    client.send(headers(3, fields('GET', '/next')))
    const second = await client.response(3)
    assert.equal(second.body, next)
    checkStream(client, one, expected)
  } finally {
    client.connection.socket.destroy()
  }
}

function checkStream(
  client: FrameClient,
  one: FramingCase,
  expected: { status: number; content: string },
): void {
  const frames = client.frames.filter(({ stream }) => stream === 1)
  for (const { type, payload } of frames) {
    if (type === frameTypes.rstStream) assert.equal(payload.readUInt32BE(0), errorCodes.noError)
  }
  assert.equal(
    client.frames.some(({ type }) => type === frameTypes.goaway),
    false,
  )
  const heads = client.headsOf(1)
  const final = heads.at(-1) ?? []
  const valuesOf = (name: string) =>
    final.filter((line) => line.startsWith(`${name}: `)).map((line) => line.slice(name.length + 2))
  assert.deepEqual(valuesOf(':status'), [`${expected.status}`])
  const content = frames
    .filter(({ type }) => type === frameTypes.data)
    .map(({ payload }) => payload.toString('latin1'))
    .join('')
  assert.equal(content, expected.content)
  assert.deepEqual(valuesOf('transfer-encoding'), [])
  const [length] = valuesOf('content-length')
  assert.ok(valuesOf('content-length').length < 2)
  if (expected.status === 204) assert.equal(length, undefined)
  const tellsOther = one.method === 'HEAD' || expected.status === 304
  if (length !== undefined && !tellsOther) assert.equal(Number(length), content.length)
}

/** What the upstream of HTTP/1.1 must have got. */
function checkRequest(one: FramingCase, requests: readonly ReadMessage[]): void {
  if (one.upstream === '2' || one.by === 'direct') return
  const [request] = requests
  const method = forwardedMethod(one)
  const isTunnel = one.asksUpgrade === true && one.body === undefined && one.client === '1.1'
  const mayHave = method !== 'TRACE' && !isTunnel
  const content = one.newBody ?? one.body ?? ''
  assert.equal(request?.startLine, `${method} /case HTTP/1.1`)
  assert.equal(request?.content, mayHave ? content : '')
}
