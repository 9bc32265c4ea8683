/** Credentials that the configuration sets in headers: they are sent, but the log never has them. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import {
  gateway,
  hostOf,
  httpRoute,
  manifest,
  policy,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { waitFor } from '../support/wait-for.ts'

const upstream = useUpstream()
const authorizer = useUpstream('authorizer', (_, response) => response.end())
const port = await freePort()
const headers = (set: Record<string, string>, add: Record<string, string> = {}) => ({
  set: Object.entries(set).map(([name, value]) => ({ name, value })),
  add: Object.entries(add).map(([name, value]) => ({ name, value })),
})
const changes = (type: 'Request' | 'Response', set: Record<string, string>) => ({
  type: `${type}HeaderModifier`,
  [`${type.toLowerCase()}HeaderModifier`]: headers(set),
})
const route = (name: string, rule: Record<string, unknown> = {}) =>
  httpRoute(name, {
    hostnames: [hostOf(name)],
    rules: [{ backendRefs: [toBackend('main')], ...rule }],
  })
const filtered = (authorization: string) =>
  route('filter', {
    filters: [
      changes('Request', { Authorization: authorization, 'x-plain': 'in clear' }),
      changes('Response', { 'Set-Cookie': 'id=CANARY-response' }),
    ],
    backendRefs: [
      toBackend('main', { filters: [changes('Request', { 'X-Gitlab-Token': 'CANARY-backend' })] }),
    ],
  })
const manifests = () => ({
  'gateway.yaml': manifest(
    gateway(port),
    staticBackend('main', upstream.port),
    staticBackend('authorizer', authorizer.port),
    route('policy'),
    policy('modifiers', 'HTTPRoute/policy', {
      traffic: {
        headerModifiers: {
          request: headers({ 'x-api-key': 'CANARY-set' }, { cookie: 'CANARY-add' }),
        },
        transformation: {
          request: {
            set: [
              { name: 'private-token', value: '"CANARY-" + "it\'s " + request.method' },
              { name: 'x-plain', value: '"in " + "clear"' },
            ],
          },
        },
        extAuth: {
          backendRef: toBackend('authorizer'),
          http: { addRequestHeaders: { 'x-vault-token': "'CANARY-vault'" } },
        },
      },
    }),
  ),
  'route.yaml': manifest(filtered('Bearer CANARY-one')),
})
const running = useGateway(() => ({ manifests: manifests() }))

const ask = async (name: string) => {
  const { body, headers: answered } = await running.send(port, { host: hostOf(name) })
  return { received: JSON.parse(body) as { headers: Record<string, string> }, answered }
}

const stored = () =>
  ['', '-wal'].map((suffix) => {
    try {
      return readFileSync(`${running.logFile}${suffix}`, 'latin1')
    } catch {
      // SQLite removes the second file when it has closed the log.
      return ''
    }
  })

const expectAll = async (authorization: string) => {
  const { received, answered } = await ask('filter')
  expect(received.headers).toMatchObject({
    authorization,
    'x-plain': 'in clear',
    'x-gitlab-token': 'CANARY-backend',
  })
  expect(answered['set-cookie']).toEqual(['id=CANARY-response'])
  expect((await ask('policy')).received.headers).toMatchObject({
    'x-api-key': 'CANARY-set',
    cookie: 'CANARY-add',
    'private-token': "CANARY-it's GET",
    'x-plain': 'in clear',
  })
  expect(authorizer.received.at(-1)?.headers['x-vault-token']).toBe('CANARY-vault')
}

describe('credentials in headers of the configuration', () => {
  it('are sent', () => expectAll('Bearer CANARY-one'))

  it('follow an edit', async () => {
    running.write('route.yaml', manifest(filtered('Bearer CANARY-two')))
    await waitFor('the new credential', async () => {
      const { received } = await ask('filter')
      return received.headers.authorization === 'Bearer CANARY-two'
    })
  })

  it('are sent after a restart from the log', async () => {
    await running.kill()
    await running.start()
    await expectAll('Bearer CANARY-two')
  })

  it('are in no file of the log, and in no export', async () => {
    const { stdout } = await sluice('log', '-o', 'json', '--log-file', running.logFile)
    expect(stdout).toContain('secret:')
    expect(stdout).not.toContain('redacted')
    await running.stop()
    for (const text of [stdout, ...stored(), running.stdout, running.stderr]) {
      expect(text).not.toContain('CANARY')
    }
    expect(stdout).toContain('in clear')
  })

  it('give the same digests in a replay of the log and of its export', async () => {
    const { stdout } = await sluice('log', '-o', 'json', '--log-file', running.logFile)
    const exported = join(running.folder, 'export.jsonl')
    writeFileSync(exported, stdout)
    const replay = async (file: string) => {
      const answer = await sluice('replay', '-o', 'json', '--log-file', file)
      expect(answer.code).toBe(0)
      return JSON.parse(answer.stdout) as Record<string, unknown>
    }
    const [log, copy] = [await replay(running.logFile), await replay(exported)]
    expect(copy).toMatchObject({ digests: log.digests, published: log.published, different: [] })
    expect(copy).not.toHaveProperty('redacted')
  })
})

describe('credentials that an expression compares with', () => {
  const comparing = useGateway(() => ({
    manifests: [
      gateway(port),
      staticBackend('main', upstream.port),
      route('compared'),
      policy('compared', 'HTTPRoute/compared', {
        traffic: {
          authorization: {
            policy: { matchExpressions: ['request.headers["x-gitlab-token"] == "CANARY"'] },
          },
        },
      }),
    ],
  }))

  it('are left out of an export, whose later states are not compared', async () => {
    await comparing.condition('Gateway', 'edge', 'Programmed', 'True')
    await comparing.stop()
    const { stdout } = await sluice('log', '-o', 'json', '--log-file', comparing.logFile)
    expect(stdout).not.toContain('CANARY')
    const exported = join(comparing.folder, 'export.jsonl')
    writeFileSync(exported, stdout)
    const { code, stdout: text } = await sluice('replay', '--log-file', exported)
    expect(text).toMatch(/of which 0 differ/)
    expect(text).toMatch(/\d+ were published after objects whose credentials the export leaves out/)
    expect(code).toBe(0)
  })
})
