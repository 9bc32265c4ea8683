import { describe, expect, it } from 'vitest'
import { readProxyHeader } from './proxy-protocol.ts'

const bytes = (text: string) => Buffer.from(text, 'latin1')
const signature = '\r\n\r\n\0\r\nQUIT\n'
const ipv4 = '\x0c\x00\x02\x07\xc6\x33\x64\x01\xdc\x04\x01\xbb'
const ipv6 = `\x20\x01\x0d\xb8${'\0'.repeat(11)}\x01`
const length = (text: string) => String.fromCharCode(text.length >> 8, text.length & 255)
const binary = (command: string, family: string, body: string) =>
  bytes(`${signature}${command}${family}${length(body)}${body}`)

describe('readProxyHeader', () => {
  it('reads version 1', () => {
    const line = 'PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n'
    expect(readProxyHeader(bytes(`${line}GET /`))).toEqual({
      version: 1,
      length: line.length,
      source: { address: '192.0.2.1', port: 56_324 },
      tlvs: new Map(),
    })
    const six = 'PROXY TCP6 2001:db8::1 ::1 1 2\r\n'
    expect(readProxyHeader(bytes(six))).toMatchObject({ source: { address: '2001:db8::1' } })
    const unknown = 'PROXY UNKNOWN ffff::1 ::1 1 2\r\n'
    expect(readProxyHeader(bytes(unknown))).toMatchObject({
      length: unknown.length,
      source: undefined,
    })
  })

  it('refuses a header of version 2 whose checksum is wrong', () => {
    // The sum was computed with another implementation.
    const sum = '\x4f\xda\xd4\x4f'
    const read = (value: string) =>
      readProxyHeader(binary('\x21', '\x11', `${ipv4}\x04\x00\x01a\x03${length(value)}${value}`))
    expect(read(sum)).toMatchObject({ source: { address: '12.0.2.7' } })
    expect(read('\0\0\0\0')).toBe('malformed')
    expect(read(`${sum}\0`)).toBe('malformed')
    expect(read('')).toBe('malformed')
    const followed = Buffer.concat([
      binary('\x21', '\x11', `${ipv4}\x04\x00\x01a\x03\x00\x04${sum}`),
      bytes('GET /'),
    ])
    expect(readProxyHeader(followed)).toMatchObject({ source: { address: '12.0.2.7' } })
  })

  it('reads version 2, including extensions', () => {
    const tlvs = '\x04\x00\x02ab\xea\x00\x00\x04\x00\x01c'
    expect(readProxyHeader(binary('\x21', '\x11', ipv4 + tlvs))).toEqual({
      version: 2,
      length: 16 + ipv4.length + tlvs.length,
      source: { address: '12.0.2.7', port: 56_324 },
      // Of equal types, the first counts.
      tlvs: new Map([
        [4, new Uint8Array([97, 98])],
        [0xea, new Uint8Array()],
      ]),
    })
    expect(readProxyHeader(binary('\x21', '\x00', '\x04\x00\x01a'))).toMatchObject({
      source: undefined,
      tlvs: new Map([[4, new Uint8Array([97])]]),
    })
    const body = `${ipv6}${ipv6}\x00\x50\x01\xbb`
    expect(readProxyHeader(binary('\x21', '\x21', body))).toMatchObject({
      source: { address: '2001:db8::1', port: 80 },
    })
    const mapped = `${'\0'.repeat(10)}\xff\xff\xc0\x00\x02\x07`
    expect(readProxyHeader(binary('\x21', '\x21', `${mapped}${ipv6}\0\x50\0\x50`))).toMatchObject({
      source: { address: '192.0.2.7' },
    })
    expect(readProxyHeader(binary('\x20', '\x00', ''))).toMatchObject({
      length: 16,
      source: undefined,
    })
    expect(readProxyHeader(binary('\x21', '\x31', 'x'.repeat(216)))).toMatchObject({
      source: undefined,
    })
  })

  it('returns incomplete for a truncated header, wherever it is cut', () => {
    for (const whole of [
      bytes('PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n'),
      binary('\x21', '\x11', ipv4),
    ]) {
      for (let end = 0; end < whole.length; end++) {
        expect(readProxyHeader(whole.subarray(0, end)), `${end} bytes`).toBe('incomplete')
      }
      expect(readProxyHeader(whole)).toMatchObject({ length: whole.length })
    }
  })

  it.each(['GET / HTTP/1.1\r\n', 'proxy TCP4 192.0.2.1 198.51.100.1 1 2\r\n', '\x16\x03\x01'])(
    'finds no header in %j',
    (text) => expect(readProxyHeader(bytes(text))).toBe('absent'),
  )

  it.each([
    'PROXY TCP4 192.0.2.1 198.51.100.1 56324\r\n',
    'PROXY TCP4 2001:db8::1 ::1 1 2\r\n',
    'PROXY TCP4 192.0.2.999 198.51.100.1 1 2\r\n',
    'PROXY TCP4 192.0.2.1 198.51.100.1 70000 443\r\n',
    `PROXY TCP4 ${'1'.repeat(120)}`,
    `${signature}\x11\x11${length(ipv4)}${ipv4}`,
    `${signature}\x22\x11${length(ipv4)}${ipv4}`,
    `${signature}\x21\x11\x00\x04abcd`,
    `${signature}\x21\x11\xff\xff`,
    // Extensions that are cut, or longer than the header.
    `${signature}\x21\x11\x00\x0e${ipv4}\x04\x00`,
    `${signature}\x21\x11\x00\x0f${ipv4}\x04\x00\x01`,
    `${signature}\x21\x31\x00\x04abcd`,
  ])('refuses %j', (text) => expect(readProxyHeader(bytes(text))).toBe('malformed'))
})
