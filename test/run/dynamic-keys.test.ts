/** API keys that are events of the log, and in no manifest. */
import { hash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openNatsLog } from '../../src/control/log/nats.ts'
import { useFixture, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort, RunningGateway, sluice } from '../support/gateway.ts'
import {
  configMap,
  gateway,
  hostOf,
  httpRoute,
  manifest,
  policy,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { startNatsServer } from '../support/nats-server.ts'
import { describeWithParts } from '../support/parts.ts'

const upstream = useUpstream()
const labels = { 'sluice.dev/api-keys': 'true' }
const byLabel = { configMapSelector: { matchLabels: labels } }
const hashed = (key: string) => JSON.stringify({ keyHash: `sha256:${hash('sha256', key)}` })

const manifestsFor = (port: number) => [
  gateway(port),
  staticBackend('main', upstream.port),
  httpRoute('app', { hostnames: [hostOf('app')], rules: [{ backendRefs: [toBackend('main')] }] }),
  policy('keys', 'HTTPRoute/app', { traffic: { apiKeyAuthentication: byLabel } }),
]

/** Asks a gateway, and changes the keys of its log. */
function toolsOf(where: () => readonly string[]) {
  const request = (key: string) => ({
    host: hostOf('app'),
    headers: { authorization: `Bearer ${key}` },
  })
  const keys = (command: string, ...args: string[]) =>
    sluice('keys', command, ...args, '--dynamic', ...where())
  const change = (command: string, ...args: string[]) =>
    keys(command, ...args, '--reason', 'ticket 7', '--author', 'ops')
  const becomes = (running: RunningGateway, port: number, key: string, status: number) =>
    running.sendUntil(port, request(key), (response) => response.status === status)
  const list = async () =>
    JSON.parse((await keys('list', '-o', 'json')).stdout) as Record<string, unknown>[]
  return { request, change, keys, becomes, list }
}

describe('sluice keys --dynamic beside `sluice run`', async () => {
  const port = await freePort()
  const running = useGateway(() => ({
    manifests: { 'base.yaml': manifest(...manifestsFor(port)) },
  }))
  const { request, keys, change, becomes, list } = toolsOf(() => ['--log-file', running.logFile])
  let ann = ''

  it('creates a key that the gateway accepts, and stores only its hash', async () => {
    await becomes(running, port, 'any', 401)
    const { stdout, stderr } = await change('create', 'ann', '--team', 'sales')
    ann = stdout.trim()
    expect(ann).toMatch(/^sk-/)
    expect(stderr).not.toContain('accepts these keys')
    await becomes(running, port, ann, 200)
    const log = (await sluice('log', '--log-file', running.logFile, '-o', 'json')).stdout
    expect(log).not.toContain(ann)
    const event = log.split('\n').find((line) => line.includes('dev.sluice.apikeys.changed.v1'))
    expect(JSON.parse(event ?? '').event.data).toEqual({
      namespace: 'default',
      entries: {
        ann: JSON.stringify({
          keyHash: `sha256:${hash('sha256', ann)}`,
          metadata: { team: 'sales' },
        }),
      },
      reason: 'ticket 7',
      author: 'ops',
    })
    await running.condition('GatewayPolicy', 'keys', 'Accepted', 'True')
  })

  it('rotates, disables, enables and deletes a key, and keeps keys across a restart', async () => {
    const before = ann
    ann = (await change('rotate', 'ann')).stdout.trim()
    await becomes(running, port, ann, 200)
    expect((await running.send(port, request(before))).status).toBe(200)
    const old = (await change('create', 'old', '--expires', '90d')).stdout.trim()
    await becomes(running, port, old, 200)
    expect((await change('disable', 'old')).stdout).toBe('key old is disabled\n')
    await becomes(running, port, old, 401)
    await running.stop()
    const late = (await change('create', 'late')).stdout.trim()
    await running.start()
    expect((await running.send(port, request(ann))).status).toBe(200)
    expect((await running.send(port, request(late))).status).toBe(200)
    expect((await running.send(port, request(old))).body).toContain('the API key is disabled')
    await change('enable', 'old')
    await becomes(running, port, old, 200)
    await change('delete', 'old')
    await becomes(running, port, old, 401)
    await running.kill()
    await running.start()
    expect((await running.send(port, request(ann))).status).toBe(200)
    expect((await running.send(port, request(old))).status).toBe(401)
  })

  it('imports keys, and leaves out those that the log or a manifest has', async () => {
    running.write(
      'keys.yaml',
      manifest(configMap('team', { eve: hashed('key-of-eve'), fay: hashed('key-of-fay') }, labels)),
    )
    await becomes(running, port, 'key-of-eve', 200)
    const rows = ['ann', 'bob', 'eve', 'copy'].map((name) => ({
      token: hash('sha256', `key-of-${name === 'copy' ? 'fay' : name}`),
      key_alias: name,
    }))
    const path = join(running.folder, 'export.json')
    writeFileSync(path, JSON.stringify(rows))
    const { code, stdout, stderr } = await change('import', path)
    expect([code, stdout]).toEqual([1, 'added 1 key to the event log\n'])
    expect(stderr).toContain('key 1: key ann already exists')
    expect(stderr).toContain('key 3: key eve is in ConfigMap default/team')
    expect(stderr).toContain('key 4: key copy is the same as key fay of ConfigMap default/team')
    await becomes(running, port, 'key-of-bob', 200)
  })

  it('lists dynamic keys beside those of manifests, and refuses what collides with them', async () => {
    expect((await list()).map(({ name, place }) => `${name}: ${place}`)).toEqual([
      'ann: the event log',
      'bob: the event log',
      'late: the event log',
      'eve: ConfigMap default/team',
      'fay: ConfigMap default/team',
    ])
    const refused: [[string, string], string][] = [
      [['create', 'ann'], 'key ann already exists'],
      [['create', 'eve'], 'key eve is in ConfigMap default/team; change it there'],
      [['disable', 'eve'], 'key eve is in ConfigMap default/team; change it there'],
      [['delete', 'zoe'], 'the event log: key zoe does not exist'],
    ]
    for (const [args, problem] of refused) {
      const { code, stderr, stdout } = await change(...args)
      expect([code, stdout]).toEqual([2, ''])
      expect(stderr).toContain(problem)
    }
    expect((await keys('create', 'kim')).stderr).toContain('--dynamic needs --reason')
    expect((await sluice('keys', 'list')).stderr).toContain('(--file), or use --dynamic')
    const other = await change('create', 'kim', '--namespace', 'other')
    expect(other.stderr).toContain('no policy of namespace other accepts these keys')
    running.write('keys.yaml', manifest(configMap('team', { zed: hashed(ann) }, labels)))
    await becomes(running, port, 'key-of-eve', 401)
    const { message } = await running.condition('GatewayPolicy', 'keys', 'Accepted', 'True')
    expect(message).toContain(
      'entry ann of the event log duplicates the key of entry zed of ConfigMap default/team',
    )
  })

  it('warns in place of failing if manifests are validated whose policy accepts only dynamic keys', async () => {
    running.remove('keys.yaml')
    const { code, stdout, stderr } = await sluice('validate', '-f', running.manifests)
    expect([code, stdout + stderr]).toEqual([0, expect.not.stringContaining('no key is accepted')])
  })
})

describeWithParts(['nats-server'], 'sluice keys --dynamic beside gateways on NATS', async () => {
  const server = useFixture(startNatsServer, (one) => one.remove())
  const port = await freePort()
  const addresses = ['127.0.0.1', '127.0.0.2']
  const gateways: RunningGateway[] = []

  it('changes keys of all replicas, and keeps them if earlier events are removed', async () => {
    const { request, change } = toolsOf(() => ['--nats', server.url])
    const start = async (address: string) => {
      const running = new RunningGateway({
        manifests: { 'base.yaml': manifest(...manifestsFor(port)) },
        nats: server.url,
        env: { XDG_STATE_HOME: join(server.folder, address) },
        args: ['--bind-address', address],
      })
      gateways.push(running)
      await running.start()
    }
    const become = (key: string, status: number) =>
      Promise.all(
        gateways.map((running, at) =>
          running.sendUntil(
            port,
            { ...request(key), address: addresses[at] ?? '' },
            (response) => response.status === status,
          ),
        ),
      )
    try {
      for (const address of addresses) await start(address)
      const key = (await change('create', 'ann')).stdout.trim()
      await become(key, 200)
      for (const running of gateways) await running.stop()
      const log = await openNatsLog({ servers: server.url, create: false })
      await log.purgeUpTo((await log.snapshots()).at(-1)?.position ?? (0 as never))
      expect(await log.firstPosition()).toBeGreaterThan(1)
      await log.close()
      for (const running of gateways) await running.start()
      await become(key, 200)
      await change('disable', 'ann')
      await become(key, 401)
    } finally {
      for (const running of gateways) await running.dispose()
    }
  })
})
