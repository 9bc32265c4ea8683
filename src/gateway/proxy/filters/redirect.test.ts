import { describe, expect, it } from 'vitest'
import type { RedirectFilter } from './compile.ts'
import { redirectLocation } from './redirect.ts'

const request = { scheme: 'http', authority: 'a.test:8080', path: '/p/q', query: 'x=1' } as const

function location(fields: Partial<RedirectFilter>, listenerPort = 8080, prefix?: string) {
  const filter: RedirectFilter = { type: 'redirect', statusCode: 302, ...fields }
  return redirectLocation(filter, request, listenerPort, prefix)
}

describe('redirectLocation', () => {
  it('uses the listener port if neither scheme nor port is set', () =>
    expect(location({ hostname: 'b.test' })).toBe('http://b.test:8080/p/q?x=1'))

  it('uses the default port of a configured scheme', () => {
    expect(location({ scheme: 'https' })).toBe('https://a.test/p/q?x=1')
    expect(location({ scheme: 'http' })).toBe('http://a.test/p/q?x=1')
  })

  it('includes a configured port unless it is the default port of the scheme', () => {
    expect(location({ port: 9000 })).toBe('http://a.test:9000/p/q?x=1')
    expect(location({ port: 80 })).toBe('http://a.test/p/q?x=1')
    expect(location({ scheme: 'https', port: 443 })).toBe('https://a.test/p/q?x=1')
    expect(location({ scheme: 'https', port: 8443 })).toBe('https://a.test:8443/p/q?x=1')
  })

  it('omits the listener port if it is 80', () =>
    expect(location({ hostname: 'b.test' }, 80)).toBe('http://b.test/p/q?x=1'))

  it('changes the path and keeps the query', () => {
    const full = { type: 'ReplaceFullPath', value: '/new' } as const
    expect(location({ path: full }, 80)).toBe('http://a.test/new?x=1')
    const prefix = { type: 'ReplacePrefixMatch', value: '/new' } as const
    expect(location({ path: prefix }, 80, '/p')).toBe('http://a.test/new/q?x=1')
    expect(location({ path: prefix }, 80)).toBe(undefined)
  })

  it('keeps the brackets of an IPv6 host', () => {
    const filter: RedirectFilter = { type: 'redirect', statusCode: 302 }
    const v6 = { ...request, authority: '[::1]:8080' }
    expect(redirectLocation(filter, v6, 8080, undefined)).toBe('http://[::1]:8080/p/q?x=1')
  })
})
