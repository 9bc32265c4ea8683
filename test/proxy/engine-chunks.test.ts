import { afterEach, beforeEach, expect, test } from 'vitest'
import {
  type EngineRig,
  eventually,
  RawConnection,
  RawUpstream,
  startEngine,
} from './engine-rig.ts'

const head = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'

let rig: EngineRig
let upstream: RawUpstream
let client: RawConnection
let server: RawConnection

beforeEach(async () => {
  rig = await startEngine()
  upstream = await RawUpstream.start()
  rig.plane.upstream = upstream.address
  client = await RawConnection.connect(rig.port)
  client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  await eventually(() => upstream.connections[0]?.text.endsWith('\r\n\r\n') === true)
  server = upstream.connections[0] as RawConnection
  server.socket.setNoDelay(true)
  server.write(head)
  await eventually(() => client.text === head)
})

afterEach(async () => {
  await rig.close()
  upstream.close()
})

const a20 = 'a'.repeat(20)
const large = 'l'.repeat(0x5001)

/** What an upstream writes by itself, and what its client gets of it. */
const pieces: readonly (readonly [string, string])[] = [
  ['5\r\nhello\r\n', '5\r\nhello\r\n'],
  [`14\r\n${a20}\r\n`, `14\r\n${a20}\r\n`],
  // Bytes that look like framing, or like no text.
  ['a\r\n\r\n0\r\n\r\nxyz\r\n', 'a\r\n\r\n0\r\n\r\nxyz\r\n'],
  ['3\r\n\0\x80\xff\r\n', '3\r\n\0\x80\xff\r\n'],
  [`5001\r\n${large}\r\n`, `5001\r\n${large}\r\n`],
  // Framed otherwise than we do.
  ['A\r\n0123456789\r\n', 'a\r\n0123456789\r\n'],
  ['005\r\nhello\r\n', '5\r\nhello\r\n'],
  ['0000005\r\nhello\r\n', '5\r\nhello\r\n'],
  ['5;name=value\r\nhello\r\n', '5\r\nhello\r\n'],
  // More than one, and parts of one.
  ['1\r\na\r\n1\r\nb\r\n', '1\r\na\r\n1\r\nb\r\n'],
  ['1\r\na\r\n5\r\nhel', '1\r\na\r\n3\r\nhel\r\n'],
  ['lo\r\n', '2\r\nlo\r\n'],
  ['2\r\nok\r\n', '2\r\nok\r\n'],
]

test('complete chunks in canonical form are forwarded unchanged', async () => {
  let expected = head
  for (const [sent, got] of pieces) {
    server.write(Buffer.from(sent, 'latin1'))
    expected += got
    await eventually(() => client.text.length >= expected.length)
    expect(client.text.slice(expected.length - got.length)).toBe(got)
  }
  server.write('0\r\n\r\n')
  expected += '0\r\n\r\n'
  await eventually(() => client.text.length >= expected.length)
  expect(client.text).toBe(expected)
  await eventually(() => rig.plane.done.length === 1)
  const data = 5 + 20 + 10 + 3 + large.length + 10 + 5 + 5 + 5 + 2 + 6 + 2
  expect(rig.plane.done[0]).toMatchObject({ ending: 'complete', responseBytes: data })
})

/** What follows a whole chunk and cannot be read. */
const broken = [
  '5\r\nhello!\r\n',
  '5\r\nhelloab',
  '5\nhello\r\n',
  '5 \r\nhello\r\n',
  '-5\r\nhello\r\n',
  '0x5\r\nhello\r\n',
  '\r\nhello\r\n',
  '100000000\r\nhello\r\n',
]

test.each(broken)('an invalid chunk after a valid one is not forwarded: %j', async (bad) => {
  server.write('2\r\nok\r\n')
  const whole = `${head}2\r\nok\r\n`
  await eventually(() => client.text === whole)
  server.write(bad)
  await client.untilEnd()
  expect(client.text.startsWith(whole)).toBe(true)
  expect(client.text).not.toContain('0\r\n\r\n')
  expect(client.text.slice(whole.length)).toMatch(/^(5\r\nhello\r\n)?$/)
  await eventually(() => rig.plane.done.length === 1)
  expect(rig.plane.done[0]?.ending).toBe('upstream-cut')
})
