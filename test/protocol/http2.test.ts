import { describe, expect, it } from 'vitest'
import {
  errorCodes,
  frameTypes,
  pingFrame,
  rstStreamFrame,
  settingIds,
  settingsFrame,
  windowUpdateFrame,
} from '../../src/engines/http/http2/frames.ts'
import { RawConnection } from '../proxy/engine-rig.ts'
import {
  data,
  endHeaders,
  endStream,
  type Field,
  FrameClient,
  frame,
  get,
  headers,
  post,
} from '../proxy/frame-client.ts'
import {
  compression,
  flowControl,
  frameSize,
  limits,
  protocol,
  rig,
  streamClosed,
  upstream,
  without,
} from './http2-rig.ts'

const replaced = (name: string, value: string) =>
  get.map(([key, old]): Field => [key, key === name ? value : old])

describe('a malformed request is a stream error and is not forwarded', () => {
  it.each<[string, readonly Field[]]>([
    ['a name in upper case', [...get, ['X-Upper', 'a']]],
    ['a name with a space', [...get, ['x y', 'a']]],
    ['an empty name', [...get, ['', 'a']]],
    ['a name with a colon inside', [...get, ['x:y', 'a']]],
    ['a line feed in a value', [...get, ['x', 'a\nb: c']]],
    ['a carriage return in a value', [...get, ['x', 'a\r\nb: c']]],
    ['NUL in a value', [...get, ['x', 'a\0b']]],
    ['white space before a value', [...get, ['x', ' a']]],
    ['white space after a value', [...get, ['x', 'a\t']]],
    ['connection', [...get, ['connection', 'close']]],
    ['proxy-connection', [...get, ['proxy-connection', 'close']]],
    ['keep-alive', [...get, ['keep-alive', '1']]],
    ['transfer-encoding', [...get, ['transfer-encoding', 'chunked']]],
    ['upgrade', [...get, ['upgrade', 'websocket']]],
    ['te other than trailers', [...get, ['te', 'trailers, gzip']]],
    ['an unknown pseudo-header', [...get, [':foo', 'a']]],
    ['a pseudo-header of responses', [...get, [':status', '200']]],
    ['a pseudo-header after a field', [...without(':path'), ['x', 'a'], [':path', '/']]],
    ['a repeated :method', [...get, [':method', 'GET']]],
    ['a repeated :path', [...get, [':path', '/b']]],
    ['a repeated :authority', [...get, [':authority', 'y.example']]],
    ['no :method', without(':method')],
    ['no :scheme', without(':scheme')],
    ['no :path', without(':path')],
    ['an empty :path', replaced(':path', '')],
    ['an invalid :path', replaced(':path', 'a')],
    ['a :path with a space', replaced(':path', '/a HTTP/1.1')],
    ['a :path with a line end', replaced(':path', '/a HTTP/1.1\r\nx: y')],
    ['* for GET', replaced(':path', '*')],
    ['a :method that is not a token', replaced(':method', 'GE T')],
    ['a :method with a line end', replaced(':method', 'GET / HTTP/1.1\r\nx')],
    ['an :authority with a space', replaced(':authority', 'x y')],
    ['an :authority with userinfo', replaced(':authority', 'u@x.example')],
    ['a Host that differs from :authority', [...get, ['host', 'y.example']]],
    ['Host twice', [...without(':authority'), ['host', 'x'], ['host', 'x']]],
    ['content-length without a body', [...get, ['content-length', '3']]],
    ['CONNECT with a path', replaced(':method', 'CONNECT')],
    [
      ':protocol without CONNECT',
      [...get.slice(0, 1), [':protocol', 'websocket'], ...get.slice(1)],
    ],
  ])('%s', async (_title, fields) => {
    const before = upstream.connections.length
    const client = await FrameClient.connect(rig.port)
    client.send(headers(1, fields))
    expect(await client.refusal()).toBe(`stream 1: ${protocol}`)
    expect(rig.plane.badHeads).toEqual(['bad_request'])
    client.send(headers(3, get))
    expect((await client.response(3)).body).toBe('ok')
    expect(upstream.connections.length).toBe(before + 1)
    expect(upstream.connections.at(-1)?.text).toBe('GET / HTTP/1.1\r\nhost: x.example\r\n\r\n')
  })
})

describe('a request that HTTP/1.1 would refuse gets the same answer', () => {
  it.each<[string, readonly Field[], number, string]>([
    ['no host', without(':authority'), 400, 'bad_request'],
    ['a bad host', replaced(':authority', 'a/b'), 400, 'bad_request'],
    ['Expect', [...get, ['expect', 'magic']], 417, 'expectation_failed'],
    [
      'content-length twice',
      [...get, ['content-length', '0'], ['content-length', '0']],
      400,
      'bad_request',
    ],
    ['content-length that is not a number', [...get, ['content-length', '+1']], 400, 'bad_request'],
    // Each counts for 32 octets more than it has (RFC 9113 6.5.2).
    [
      'a head of very many fields',
      [...get, ...Array.from({ length: 496 }, (): Field => ['x', 'a'])],
      431,
      'headers_too_large',
    ],
    ['a head that is too large', [...get, ['x', 'a'.repeat(16_300)]], 431, 'headers_too_large'],
  ])('%s', async (_title, fields, status, code) => {
    const client = await FrameClient.connect(rig.port)
    const block = headers(1, fields)
    client.send(block.length > 16_393 ? continued(1, fields) : block)
    expect((await client.response(1)).fields[0]).toBe(`:status: ${status}`)
    expect(rig.plane.badHeads).toEqual([code])
    client.send(headers(3, get))
    expect((await client.response(3)).body).toBe('ok')
  })
})

/** HEADERS and CONTINUATION frames of 16,384 octets. */
function continued(stream: number, fields: readonly Field[]): string {
  const block = headers(stream, fields).slice(9)
  let out = frame(frameTypes.headers, endStream, stream, block.slice(0, 16_384))
  for (let at = 16_384; at < block.length; at += 16_384) {
    const isLast = at + 16_384 >= block.length
    const piece = block.slice(at, at + 16_384)
    out += frame(frameTypes.continuation, isLast ? endHeaders : 0, stream, piece)
  }
  return out
}

describe('bodies that do not match their content-length', () => {
  const sized: readonly Field[] = [...post, ['content-length', '5']]

  it.each<[string, string[]]>([
    ['more than content-length', [data(1, '123456', endStream)]],
    ['less than content-length', [data(1, '1234', endStream)]],
    ['less, in several frames', [data(1, '12'), data(1, '3', endStream)]],
    ['nothing', [data(1, '', endStream)]],
    ['pseudo-header fields in trailers', [data(1, '12345'), headers(1, [[':path', '/']])]],
    ['trailers that do not end the stream', [data(1, '1'), headers(1, [['x', 'y']], endHeaders)]],
    ['a forbidden trailer', [data(1, '12345'), headers(1, [['content-length', '5']])]],
  ])('%s', async (_title, frames) => {
    const client = await FrameClient.connect(rig.port)
    client.send(headers(1, sized, endHeaders), ...frames)
    expect(await client.refusal()).toBe(`stream 1: ${protocol}`)
  })
})

describe('a connection that breaks the rules ends with GOAWAY', () => {
  const open = headers(1, post, endHeaders)
  it.each<[string, string, number]>([
    ['an even stream id', headers(2, get), protocol],
    ['a stream id that decreases', headers(5, get) + headers(3, get), protocol],
    ['HEADERS on a finished stream', headers(1, get), streamClosed],
    ['DATA on an idle stream', data(1, 'x'), protocol],
    ['DATA on stream 0', data(0, 'x'), protocol],
    ['a frame inside a header block', headers(1, get, endStream) + data(1, 'x'), protocol],
    ['CONTINUATION without HEADERS', frame(frameTypes.continuation, endHeaders, 1), protocol],
    [
      'a frame above the announced size',
      frame(frameTypes.data, 0, 1, 'x'.repeat(16_385)),
      frameSize,
    ],
    ['a broken header block', frame(frameTypes.headers, endHeaders, 1, '\x80'), compression],
    ['PUSH_PROMISE', frame(frameTypes.pushPromise, endHeaders, 1, '\0\0\0\x02'), protocol],
    ['a window update of 0', windowUpdateFrame(0, 0), protocol],
    ['a window that is too large', windowUpdateFrame(0, 2 ** 31 - 1), flowControl],
    [
      'an initial window that is too large',
      settingsFrame([[settingIds.initialWindowSize, 2 ** 31]]),
      flowControl,
    ],
    ['a frame size out of range', settingsFrame([[settingIds.maxFrameSize, 1]]), protocol],
    ['SETTINGS of a wrong size', frame(frameTypes.settings, 0, 0, 'x'), frameSize],
    ['PING of a wrong size', frame(frameTypes.ping, 0, 0, 'x'), frameSize],
    ['reset of an idle stream', rstStreamFrame(7, 0), protocol],
    ['more padding than the frame has', open + frame(frameTypes.data, 0x8, 1, '\x05abc'), protocol],
  ])('%s', async (title, bytes, code) => {
    const client = await FrameClient.connect(rig.port)
    if (title === 'HEADERS on a finished stream') {
      client.send(headers(1, get))
      await client.response(1)
    }
    client.send(bytes)
    expect(await client.refusal()).toBe(`connection: ${code}`)
    await client.connection.untilEnd()
  })

  it('if SETTINGS is not the first frame', async () => {
    const early = new FrameClient(await RawConnection.connect(rig.port))
    early.send('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', pingFrame('12345678', false))
    expect(await early.refusal()).toBe(`connection: ${protocol}`)
  })

  it('refuses streams above the limit as retryable', async () => {
    rig.plane.request = () => {}
    const port = await rig.engine.listen(0, { http2: { ...limits, maxConcurrentStreams: 2 } })
    const client = await FrameClient.connect(port)
    client.send(headers(1, get), headers(3, get), headers(5, get))
    expect(await client.refusal()).toBe(`stream 5: ${errorCodes.refusedStream}`)
  })
})
