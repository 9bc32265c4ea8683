/** Paths that servers read in different ways, before routes and rules compare them. */
import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePorts, type RunningGateway, sluice } from '../support/gateway.ts'
import { gateway, httpRoute, policy, staticBackend, toBackend } from '../support/manifests.ts'
import type { ReceivedRequest } from '../support/upstream.ts'
import { waitFor } from '../support/wait-for.ts'

const modes = ['keep', 'normalize', 'refuse'] as const
type Mode = (typeof modes)[number]

const upstream = useUpstream()
const ports = await freePorts(...modes)

function useMode(mode: Mode): RunningGateway {
  const rules = [
    {
      matches: [{ path: { type: 'PathPrefix', value: '/admin' } }],
      filters: [
        {
          type: 'RequestHeaderModifier',
          requestHeaderModifier: { set: [{ name: 'x-route', value: 'admin' }] },
        },
      ],
      backendRefs: [toBackend('main')],
    },
    { backendRefs: [toBackend('main')] },
  ]
  const traffic = {
    authorization: {
      action: 'Deny',
      policy: { matchExpressions: ['request.path.startsWith("/secret")'] },
    },
  }
  return useGateway(() => ({
    args: mode === 'keep' ? [] : ['--ambiguous-paths', mode],
    manifests: [
      gateway(ports[mode]),
      staticBackend('main', upstream.port, { http: { version: 'HTTP1' } }),
      httpRoute('all', { rules }),
      policy('secret', 'HTTPRoute/all', { traffic }),
    ],
  }))
}

useMode('keep')
useMode('refuse')
const normalizing = useMode('normalize')

interface Outcome {
  readonly status: number
  readonly path?: string
  readonly route?: unknown
}

function outcome(status: number, body: string): Outcome {
  if (status !== 200) return { status }
  const { path, headers } = JSON.parse(body) as ReceivedRequest
  const route = headers['x-route']
  return { status, path, ...(route !== undefined && { route }) }
}

async function get(mode: Mode, path: string): Promise<Outcome> {
  const socket = connect(ports[mode], '127.0.0.1')
  socket.write(`GET ${path} HTTP/1.1\r\nhost: gateway\r\nconnection: close\r\n\r\n`)
  const [head = '', body = ''] = (await text(socket)).split('\r\n\r\n')
  return outcome(Number(head.split(' ')[1]), body)
}

describe('ambiguous paths', () => {
  it.each([
    '/%73ecret',
    '//secret',
    '/x/../secret',
    '/./secret',
    '/%2e/secret',
    '/x/%2E%2e/secret',
    '/x\\..\\secret',
    '/x//..///secret',
  ])('bypass a rule about the plain path only if paths are kept as sent: %s', async (path) => {
    expect(await get('keep', path)).toEqual({ status: 200, path })
    const normalized = await get('normalize', path)
    if (path === '/x//..///secret') expect(normalized).toMatchObject({ path: '/x/secret' })
    else expect(normalized).toEqual({ status: 403 })
    expect(await get('refuse', path)).toEqual({ status: 400 })
  })

  it.each([
    ['/%61dmin/%7Euser', '/admin/~user'],
    ['/x/..//admin/a/./b', '/admin/a/b'],
    ['/../../admin', '/admin'],
    ['/admin/a/..', '/admin/'],
    ['/admin/.', '/admin/'],
    ['/admin//?a=//b/../%61', '/admin/?a=//b/../%61'],
  ])('are normalized before routing and forwarding: %s', async (path, normal) => {
    expect(await get('normalize', path)).toEqual({ status: 200, path: normal, route: 'admin' })
    expect(await get('refuse', path)).toEqual({ status: 400 })
  })

  it.each([
    '/x/..;a/secret',
    '/x/..%2Fsecret',
    '/x%2f..%2fsecret',
    '/x%5c..%5csecret',
    '/secret%00',
    '/%%37',
    '/%zz',
  ])('that cannot be normalized are refused: %s', async (path) => {
    expect(await get('normalize', path)).toEqual({ status: 400 })
    expect(await get('refuse', path)).toEqual({ status: 400 })
  })

  it.each(['/a%2Fb', '/a%5Cb', '/a%252fb', '/a%0ab'])(
    'with an escaped separator or control character are refused only in mode refuse: %s',
    async (path) => {
      expect(await get('normalize', path)).toEqual({ status: 200, path })
      expect(await get('refuse', path)).toEqual({ status: 400 })
    },
  )

  it.each([
    '/',
    '/a/b/',
    '/caf%C3%A9',
    '/caf%c3%a9/%20',
    '/.well-known/x',
    '/a;b=c',
    '/a..b/...',
    '/a?x=%2F..%2F//',
  ])('do not include paths such as %s', async (path) => {
    for (const mode of modes) expect(await get(mode, path)).toEqual({ status: 200, path })
  })

  it('are handled in HTTP/2 too', async () => {
    const ask = (mode: Mode, path: string) =>
      new Promise<Outcome>((resolve, reject) => {
        const session = connectHttp2(`http://127.0.0.1:${ports[mode]}`)
        session.once('error', reject)
        const stream = session.request({ ':path': path })
        let status = 0
        stream.once('response', (headers) => {
          status = Number(headers[':status'])
        })
        text(stream).then((body) => {
          session.close()
          resolve(outcome(status, body))
        }, reject)
      })
    expect(await ask('normalize', '/x/%2e%2e/secret')).toEqual({ status: 403 })
    expect(await ask('normalize', '//admin')).toMatchObject({ path: '/admin', route: 'admin' })
    expect(await ask('refuse', '//admin')).toEqual({ status: 400 })
  })

  it('appear in the access log as they were sent', async () => {
    await get('normalize', '/%61dmin/mark')
    await waitFor('the log', () => normalizing?.stdout.includes('http.path=/%61dmin/mark'))
  })

  it('cannot be set to an unknown mode', async () => {
    const { code, stderr } = await sluice(
      'run',
      '-f',
      'examples/quickstart',
      '--ambiguous-paths',
      'maybe',
    )
    expect(code).toBe(2)
    expect(stderr).toContain('--ambiguous-paths')
  })
})
