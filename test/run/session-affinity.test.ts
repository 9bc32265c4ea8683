import { describe, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { gateway, hostOf, manifest, policy, routeByHost, service } from '../support/manifests.ts'
import { waitFor } from '../support/wait-for.ts'

const upstreams = [useUpstream('a'), useUpstream('b'), useUpstream('c')] as const
const [a, b, c] = upstreams
const port = await freePort()
const affine = (name: string, source: string) => [
  ...service(name, [a.port, b.port, c.port]),
  routeByHost(name, { name, port: 80 }),
  policy(`by-${name}`, `Service/${name}`, { backend: { sessionAffinity: { source } } }),
]
const changing = (...ports: number[]) => manifest(...service('changing', ports))

const running = useGateway(() => ({
  args: ['--workers', '2'],
  manifests: {
    'base.yaml': manifest(
      gateway(port),
      ...affine('header', 'request.headers["x-session"]'),
      ...affine('failing', 'jwt.sub'),
      ...affine('body', 'string(request.body)'),
      routeByHost('changing', { name: 'changing', port: 80 }),
      policy('by-changing', 'Service/changing', {
        backend: { sessionAffinity: { source: 'request.headers["x-session"]' } },
      }),
    ),
    'changing.yaml': changing(a.port, b.port, c.port),
  },
}))

const sessions = Array.from({ length: 30 }, (_, at) => `session-${at}`)

async function reached(name: string, session?: string): Promise<string> {
  const headers: Record<string, string> = session === undefined ? {} : { 'x-session': session }
  const { body } = await running.send(port, { host: hostOf(name), headers })
  return JSON.parse(body).upstream
}

const reachedBy = (name: string) => Promise.all(sessions.map((session) => reached(name, session)))

describe('backend.sessionAffinity', () => {
  it('sends requests with the same value to the same endpoint, in all workers', async () => {
    const first = await reachedBy('header')
    expect(new Set(first)).toEqual(new Set(['a', 'b', 'c']))
    for (let round = 0; round < 4; round++) expect(await reachedBy('header')).toEqual(first)
  })

  it('chooses endpoints as usual if the value is empty, missing or an error', async () => {
    const all = new Set(['a', 'b', 'c'])
    const many = (name: string, session?: string) =>
      Promise.all(sessions.map(() => reached(name, session)))
    expect(new Set(await many('header'))).toEqual(all)
    expect(new Set(await many('header', ''))).toEqual(all)
    expect(new Set(await many('failing', 'one'))).toEqual(all)
  })

  it('moves only the sessions of an endpoint that leaves, and moves them back', async () => {
    const before = await reachedBy('changing')
    running.write('changing.yaml', changing(a.port, b.port))
    const after = await waitFor('the change in both workers', async () => {
      const found = await reachedBy('changing')
      return !found.includes('c') && found
    })
    const stayed = before.map((name, at) => (name === 'c' ? after[at] : name))
    expect(after).toEqual(stayed)
    running.write('changing.yaml', changing(a.port, b.port, c.port))
    await waitFor('the change back', async () => `${await reachedBy('changing')}` === `${before}`)
  })

  it('is reported if its expression reads what has no value', async () => {
    const status = await waitFor('the status', () => running.status('GatewayPolicy', 'by-body'))
    expect(JSON.stringify(status)).toContain('request has no field body')
  })
})
