import { describe, expect, it } from 'vitest'
import { forwardProxyFor, readForwardProxies } from './forward-proxies.ts'

const url = 'http://proxy.example:3128'

describe('the proxies of the environment', () => {
  it.each([
    ['proxy:3128', { scheme: 'http', host: 'proxy', port: 3128 }],
    ['http://proxy', { scheme: 'http', host: 'proxy', port: 80 }],
    ['HTTPS://proxy', { scheme: 'https', host: 'proxy', port: 443 }],
    ['socks5h://[::1]:9', { scheme: 'socks5', host: '::1', port: 9 }],
    [
      'http://a%3Ab:p%40s@proxy:1',
      { scheme: 'http', host: 'proxy', port: 1, credentials: { username: 'a:b', password: 'p@s' } },
    ],
  ])('reads %s', (text, expected) => {
    expect(readForwardProxies({ HTTPS_PROXY: text })?.https).toEqual(expected)
  })

  it.each(['ftp://user:secret@proxy', 'http://', 'http://user:secret@proxy:99999'])(
    'refuses %s without repeating it',
    (text) => {
      const read = () => readForwardProxies({ HTTP_PROXY: text })
      expect(read).toThrow('HTTP_PROXY is not the URL of an HTTP or SOCKS 5 proxy')
      expect(read).not.toThrow('secret')
    },
  )

  it('are none if no variable or only empty ones are set', () => {
    expect(readForwardProxies({ NO_PROXY: 'a', HTTPS_PROXY: '', https_proxy: '' })).toBeUndefined()
  })

  it.each([
    ['a.example:443', 'A.Example', true],
    ['a.example:8443', 'a.example', false],
    ['.example', 'a.example', true],
    ['*.a.example', 'a.example.', true],
    ['a.example', 'sub.a.example', true],
    ['a.example', 'nota.example', false],
    ['*', 'a.example', true],
    ['b.example c.example,,a.example', 'a.example', true],
    ['', 'a.example', false],
    ['', 'localhost', true],
    ['', 'shop', true],
    ['', 'shop.default.svc', true],
    ['', 'shop.default.svc.cluster.local.', true],
    ['', 'metadata.google.internal', true],
    ['', '203.0.113.1', true],
    ['', '2001:db8::1', true],
    ['', 'a.0x7f', true],
    ['', '2130706433', true],
    ['', 'svc.example', false],
  ])('NO_PROXY=%s: %s is direct: %s', (noProxy, host, isDirect) => {
    const proxies = readForwardProxies({ HTTPS_PROXY: url, NO_PROXY: noProxy })
    expect(proxies && forwardProxyFor(proxies, true, host, 443)).toEqual(
      isDirect ? undefined : proxies?.https,
    )
  })
})
