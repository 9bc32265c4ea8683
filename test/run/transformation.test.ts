import { describe, expect, it } from 'vitest'
import { received, running, send, upstream } from './transformation-rig.ts'

describe('headers of requests [Traffic.transformation]', () => {
  it('[Transform.set] [HeaderTransformation.value] replaces values, each seeing the one before', async () => {
    const { headers } = await received('set', {
      path: '/p',
      headers: { 'x-seen': 'a', 'x-method': 'forged' },
    })
    expect(headers).toMatchObject({
      'x-method': 'GET /p',
      'x-seen': 'before: a',
      'x-second': 'GET /p!',
    })
  })

  it('[Transform.add] appends to existing values; [Transform.remove] removes all values of a name', async () => {
    const { headers } = await received('add', {
      headers: { 'x-list': ['a', 'b'], 'X-Gone': ['1', '2'], 'x-also-gone': '3', 'x-kept': '4' },
    })
    expect(headers).toMatchObject({ 'x-list': 'a, b, mine', 'x-count': '3', 'x-kept': '4' })
    expect(headers).not.toHaveProperty('x-gone')
    expect(headers).not.toHaveProperty('x-also-gone')
  })

  it('reads a header of several lines as one value', async () => {
    const { headers } = await received('set', { headers: { 'x-seen': ['a', 'b'] } })
    expect(headers['x-seen']).toBe('before: a, b')
  })

  it('[Transform.add] adds a header that was missing', async () => {
    expect((await received('add')).headers).toMatchObject({ 'x-list': 'mine' })
  })

  it('adds, sets, removes, then writes the body', async () => {
    const { headers, body } = await received('order', { headers: { 'x-a': 'own', 'x-b': '1' } })
    expect(headers['x-a']).toBe('own, added, set')
    expect(body).toBe('own, added, set false')
  })

  it('removes a header whose expression fails, so that no client can send it instead', async () => {
    const { headers } = await received('failing', {
      headers: {
        'x-user': 'admin',
        'x-number': '7',
        'x-line': 'old',
        'x-null': 'old',
        'x-added': 'old',
        evil: 'a%0d%0ax-smuggled:%20yes',
      },
    })
    for (const name of ['x-user', 'x-number', 'x-line', 'x-null', 'x-added', 'x-smuggled']) {
      expect(headers).not.toHaveProperty(name)
    }
  })

  it('writes strings as UTF-8 and bytes unchanged', async () => {
    const { headers } = await received('texts', {
      headers: { 'x-umlaut': Buffer.from('ä').toString('latin1') },
    })
    const bytes = Buffer.from(String(headers['x-umlaut']), 'latin1')
    expect(bytes.toString('utf8')).toBe('äü')
    expect(headers['x-bytes']).toBe('raw')
  })

  it('leaves the framing of messages to the engine', async () => {
    const { headers, body } = await received('engine', { method: 'POST', body: 'twelve bytes' })
    expect(body).toBe('twelve bytes')
    expect(headers['content-length'] ?? headers['transfer-encoding']).toBeDefined()
  })
})

describe('pseudo-headers [HeaderTransformation.name]', () => {
  it('change method, path with query, and authority', async () => {
    const { method, path, headers } = await received('pseudo', { path: '/a?q=1&r=2' })
    expect([method, path, headers.host]).toEqual(['PATCH', '/new/a?was=1', 'other.example.com'])
  })

  it('keep their value if the new one is invalid', async () => {
    const { method, path, headers } = await received('pseudo-bad', {
      path: '/a?b',
      headers: { path: 'no-slash?c' },
    })
    expect([method, path, headers.host]).toEqual(['GET', '/a?b', 'pseudo-bad.example.com'])
  })

  it('setting the header Host changes the authority', async () => {
    expect((await received('host')).headers.host).toBe('named.example.com')
  })

  it('that do not exist in that direction are ignored and reported', async () => {
    expect((await received('useless', { path: '/x' })).headers['x-works']).toBe('yes')
    const condition = await running.condition('GatewayPolicy', 'useless', 'Accepted', 'True')
    expect(condition.reason).toBe('PartiallyValid')
    for (const text of [
      'spec.traffic.transformation.request.set[0].name: a request has no :status',
      'spec.traffic.transformation.request.remove[0]: :path cannot be removed',
      'spec.traffic.transformation.response.set[0].name: a response has no :path',
    ]) {
      expect(condition.message).toContain(text)
    }
  })
})

describe('bodies of requests [Transform.body]', () => {
  it('are written as JSON', async () => {
    const { body, headers } = await received('body', { method: 'POST', body: '{"model":"m"}' })
    expect(JSON.parse(body)).toEqual({ model: 'm', n: [1, 2.5, true, null] })
    expect(headers['content-length']).toBe(String(body.length))
  })

  it('are written unchanged if they are text, even if there was no body', async () => {
    const { body, headers } = await received('body-text', {
      headers: { 'x-name': 'a' },
    })
    expect([body, headers['content-length']]).toEqual(['text of a', '9'])
  })

  it('are empty if the expression fails', async () => {
    const { body, headers } = await received('body-fails', { method: 'POST', body: '{"a":1}' })
    expect([body, headers['content-length']]).toEqual(['', '0'])
  })

  it('fail the request with 413 if they are made from a body over the limit', async () => {
    const body = `{"missing":1,"pad":"${'x'.repeat(2_097_152)}"}`
    const { length } = upstream.received
    const refused = await send('body-fails', { method: 'POST', body })
    expect([refused.status, refused.body]).toEqual([413, 'request body too large'])
    expect(upstream.received).toHaveLength(length)
  })
})

describe('before routing [Traffic.phase] [Traffic.phase=PreRouting]', () => {
  it.each([
    ['/v2/x', 'two'],
    ['/old', 'moved'],
    ['/x', 'other'],
  ])('routes %s to the rule %s by the changed headers', async (path, rule) => {
    const { headers } = await send('early', { path, headers: { 'x-version': '2' } })
    expect([headers['x-rule'], headers['x-early']]).toEqual([rule, 'yes'])
  })
})
