import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { openEmbeddedLog } from '../../src/control/log/index.ts'
import { routeApplied } from '../contract/events.ts'
import {
  freePort,
  launcher,
  type RunningGateway,
  sluice,
  startGateway,
} from '../support/gateway.ts'
import { send } from '../support/http-client.ts'
import {
  gateway,
  httpRoute,
  manifest,
  policy,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'
import { waitFor } from '../support/wait-for.ts'

let upstream: Upstream
beforeAll(async () => {
  upstream = await startUpstream()
  return () => upstream.close()
})

let running: RunningGateway | undefined
afterEach(async () => {
  await running?.dispose()
  running = undefined
})

async function start(
  more: Record<string, string> = {},
): Promise<{ gw: RunningGateway; port: number }> {
  const port = await freePort()
  const base = manifest(
    gateway(port),
    staticBackend('main', upstream.port),
    httpRoute('app', { rules: [{ backendRefs: [toBackend('main')] }] }),
  )
  running = await startGateway({ manifests: { 'base.yaml': base, ...more } })
  return { gw: running, port }
}

/** Waits for a line on standard error. */
const said = (gw: RunningGateway, pattern: RegExp) =>
  waitFor(String(pattern), () => pattern.test(gw.stderr))

const gateways = `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: extra
spec:
  parentRefs:
    - name: edge
  hostnames: ["extra.example.com"]
  rules:
    - backendRefs:
        - group: sluice.dev
          kind: GatewayBackend
          name: main
`

describe('a broken manifest in a running gateway', () => {
  it('reports file, line and column of broken YAML and keeps the previous objects of the file', async () => {
    const { gw, port } = await start({ 'extra.yaml': gateways })
    gw.write('extra.yaml', gateways.replace('  rules:', '  rules: [\n'))
    await said(gw, /error: .*extra\.yaml:\d+:\d+: /)
    expect((await send(port, { host: 'extra.example.com' })).status).toBe(200)
    gw.write('extra.yaml', gateways.replace('extra.example.com', 'mended.example.com'))
    await gw.sendUntil(port, { host: 'mended.example.com' }, ({ body }) => body.includes('mended'))
  })

  it('reports an unknown field by path and line, and keeps the previous version of the object', async () => {
    const { gw } = await start({ 'extra.yaml': gateways })
    gw.write('extra.yaml', gateways.replace('  hostnames:', '  hostnamez:'))
    await said(gw, /extra\.yaml:8:\d+: HTTPRoute default\/extra: spec\.hostnamez: /)
    const { stdout } = await sluice('status', '--log-file', gw.logFile)
    expect(stdout).toMatch(/refused: HTTPRoute default\/extra: spec\.hostnamez/)
  })

  it.each([
    [
      'an unknown version of sluice.dev',
      'apiVersion: sluice.dev/v9\nkind: GatewayPolicy\nmetadata: {name: x}\n',
      /extra\.yaml:1:\d+: .*apiVersion: sluice\.dev\/v9 is not known for GatewayPolicy/,
    ],
    [
      'an unknown kind of sluice.dev',
      'apiVersion: sluice.dev/v1alpha1\nkind: GatewayPolice\nmetadata: {name: x}\n',
      /kind: GatewayPolice is not a kind of sluice\.dev; did you mean GatewayPolicy\?/,
    ],
    [
      'a second definition of an object',
      `${gateways}---\n${gateways}`,
      /extra\.yaml:\d+:\d+: HTTPRoute default\/extra: .*extra\.yaml:1/,
    ],
  ])('[version.v1alpha1] reports %s', async (_, content, message) => {
    const { gw, port } = await start({ 'extra.yaml': content })
    await said(gw, message)
    expect((await send(port)).status).toBe(200)
  })

  it('refuses requests that an invalid policy was meant to protect', async () => {
    const invalid = policy('guard', 'HTTPRoute/app', {
      traffic: { authorization: { policy: { matchExpressionz: ['false'] } } },
    })
    const { gw, port } = await start({ 'guard.yaml': manifest(invalid) })
    await said(
      gw,
      /GatewayPolicy default\/guard: spec\.traffic\.authorization\.policy\.matchExpressionz/,
    )
    expect((await send(port)).status).toBe(500)
    const condition = await gw.condition('GatewayPolicy', 'guard', 'Accepted', 'False')
    expect(condition.reason).toBe('Invalid')
    gw.remove('guard.yaml')
    await gw.sendUntil(port, {}, ({ status }) => status === 200)
  })
})

describe('a damaged event log', () => {
  it.each([
    ['garbage in the middle', (bytes: Buffer) => bytes.fill(0x5a, 4096, bytes.length)],
    ['a truncated file', (bytes: Buffer) => bytes.subarray(0, bytes.length >> 1)],
  ])('with %s is moved aside, and the gateway starts from its manifests', async (_, damage) => {
    const { gw, port } = await start()
    await gw.stop()
    const { readFileSync } = await import('node:fs')
    writeFileSync(gw.logFile, damage(readFileSync(gw.logFile)))
    await gw.start()
    expect(gw.stderr).toMatch(/was damaged .* and is now .*corrupt/)
    expect((await send(port)).status).toBe(200)
    const kept = readdirSync(dirname(gw.logFile)).filter((name) => name.includes('corrupt'))
    expect(kept.length).toBeGreaterThan(0)
  })
})

describe('the command line', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-cli-'))
  beforeAll(() => () => rmSync(folder, { recursive: true, force: true }))

  it('exits with 2 if the input cannot be read', async () => {
    const missing = await sluice('validate', '-f', join(folder, 'absent'))
    expect([missing.code, missing.stderr]).toEqual([2, expect.stringContaining('does not exist')])
    expect((await sluice('validate')).code).toBe(2)
    const unknown = {
      code: 2,
      stderr: expect.stringMatching(/^error: unknown command 'nonsense'\n/),
    }
    expect(await sluice('nonsense')).toMatchObject(unknown)
    expect(await sluice('help', 'nonsense')).toMatchObject(unknown)
    const nowhere = await sluice('run', '-f', folder, '--bind-address', '999.1.1.1', '--ephemeral')
    expect([nowhere.code, nowhere.stderr]).toEqual([
      2,
      expect.stringContaining('--bind-address: "999.1.1.1" is not an IP address'),
    ])
    const refuse = ['--dynamic-refuse', 'nonsense', '--dynamic-refuse', '10.0.0.0/8']
    const all = await sluice('run', '-f', folder, '--bind-address', '999.1.1.1', ...refuse)
    expect(all.stderr).toContain(
      '--dynamic-refuse: "nonsense,10.0.0.0/8" is not comma-separated IP addresses and CIDRs',
    )
    expect(await sluice('--version')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^\d+\.\d+\.\d+/),
    })
    const version = JSON.parse((await sluice('version', '-o', 'json')).stdout)
    expect(version).toEqual({ version: expect.any(String), foldVersion: expect.any(String) })
    const broken = join(folder, 'broken.yaml')
    writeFileSync(broken, 'spec: [')
    const told = await sluice('validate', '-f', broken)
    expect([told.code, told.stdout]).toEqual([
      2,
      expect.stringMatching(/broken\.yaml:\d+:\d+: not YAML/),
    ])
    rmSync(broken)
    expect((await sluice('replay', '--log-file', join(folder, 'absent'))).code).toBe(2)
  })

  it('prints no result for unreadable manifests or a log with gaps', async () => {
    const broken = join(folder, 'broken.yaml')
    writeFileSync(broken, 'spec: [')
    const told = await sluice('status', '-f', broken)
    expect([told.code, told.stdout]).toEqual([2, ''])
    expect(told.stderr).toMatch(/broken\.yaml:\d+:\d+: not YAML/)
    rmSync(broken)
    const example = join(import.meta.dirname, '../../examples/quickstart/recorded.jsonl')
    const lines = readFileSync(example, 'utf8').trim().split('\n')
    const holed = join(folder, 'holed.jsonl')
    writeFileSync(holed, lines.toSpliced(4, 2).join('\n'))
    const { code, stdout } = await sluice('replay', '--log-file', holed)
    expect([code, stdout]).toEqual([1, expect.stringContaining('lacks the events at 5-6')])
  })

  it('refuses a log path that holds another file or cannot be written', async () => {
    const file = join(folder, 'mine.yaml')
    writeFileSync(file, manifest(staticBackend('good', 1)))
    const off = ['--admin-address', 'off', '--stats-address', 'off', '--readiness-address', 'off']
    const keep = (log: string) => sluice('run', '-f', file, '--log-file', log, ...off)
    const [text, nowhere, empty] = [await keep(file), await keep('/proc/none.db'), await keep('')]
    expect([text.code, text.stderr]).toEqual([2, expect.stringContaining('it is left alone')])
    expect(readFileSync(file, 'utf8')).toContain('good')
    expect([nowhere.code, nowhere.stderr]).toEqual([
      2,
      expect.stringMatching(/^sluice: \/proc\/none\.db cannot be written/),
    ])
    expect([empty.code, empty.stderr]).toEqual([2, expect.stringContaining('It must not be empty')])
  })

  it('refuses a log of a newer version and does not change it', async () => {
    const path = join(folder, 'newer.db')
    const { log } = openEmbeddedLog(path)
    await log.append([{ ...routeApplied('later'), type: 'dev.sluice.resource.applied.v9' }])
    await log.close()
    const off = ['--admin-address', 'off', '--stats-address', 'off', '--readiness-address', 'off']
    const { code, stderr } = await sluice('run', '-f', folder, '--log-file', path, ...off)
    expect([code, stderr]).toEqual([
      2,
      'sluice: position 1 of the log: event type dev.sluice.resource.applied.v9 is unknown; the log was written by a newer version\n',
    ])
    expect(readdirSync(folder).filter((name) => name.includes('corrupt'))).toEqual([])
  })

  it.runIf(existsSync('/proc/self'))('exits if it cannot create the folder of its log', () => {
    const path = '/proc/nowhere/events.db'
    const args = ['run', '-f', folder, '--log-file', path]
    const { status, stderr } = spawnSync(launcher, args, { encoding: 'utf8', timeout: 20_000 })
    expect([status, stderr]).toEqual([
      2,
      `sluice: ${path} cannot be written: ENOENT: no such file or directory, mkdir '/proc/nowhere'\n`,
    ])
  })

  it.runIf(existsSync('/dev/full'))('reports that its output could not be written', () => {
    const full = spawnSync('bash', ['-c', `"${launcher}" crds > /dev/full`], { encoding: 'utf8' })
    expect([full.status, full.stderr]).toEqual([
      2,
      expect.stringMatching(/^sluice: standard output cannot be written: .*\n$/),
    ])
  })

  it('validates without binding a port, and prints paths and messages as JSON', async () => {
    const file = join(folder, 'objects.yaml')
    writeFileSync(
      file,
      manifest(staticBackend('good', 1), { ...staticBackend('bad', 1), spec: {} }),
    )
    const { code, stdout } = await sluice('validate', '-f', file, '-o', 'json')
    expect(code).toBe(1)
    const { objects } = JSON.parse(stdout) as { objects: { name: string; errors: unknown[] }[] }
    expect(objects.map(({ name, errors }) => [name, errors.length])).toEqual([
      ['good', 0],
      ['bad', 1],
    ])
    expect(objects[0]).toMatchObject({ kind: 'GatewayBackend', namespace: 'default' })
    expect((await sluice('validate', '-f', file)).stdout).toMatch(
      /objects\.yaml:\d+:\d+: GatewayBackend default\/bad: spec: /,
    )
  })

  const onRoute = (expression: string) =>
    policy('rules', 'HTTPRoute/app', {
      traffic: { authorization: { policy: { matchExpressions: ['true', expression] } } },
    })

  it('validate reports policies that cannot run before routing, as the status does', async () => {
    const file = join(folder, 'early.yaml')
    const timeouts = { request: '5s' }
    const traffic = { phase: 'PreRouting', csrf: {}, timeouts }
    writeFileSync(file, manifest(policy('early', 'HTTPRoute/app', { traffic })))
    const { code, stdout } = await sluice('validate', '-f', file)
    expect(code).toBe(1)
    expect(stdout).toContain('spec.targetRefs[0]: phase PreRouting needs a Gateway')
    expect(stdout).toContain('spec.traffic.timeouts: does not run in phase PreRouting')
  })

  it('validate reports invalid expressions, patterns and targets that the schema cannot check', async () => {
    const file = join(folder, 'faulty.yaml')
    const elsewhere = {
      ...onRoute('true'),
      metadata: { name: 'elsewhere' },
      spec: {
        targetRefs: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: 'app' }],
        frontend: { accessLog: { filter: 'true' } },
        traffic: { basicAuthentication: { secretRef: { name: 'not-here' } } },
      },
    }
    const path = { type: 'RegularExpression', value: '(' }
    const route = httpRoute('app', { rules: [{ matches: [{ path }] }] })
    writeFileSync(file, manifest(onRoute('a b'), elsewhere, route))
    const { code, stdout } = await sluice('validate', '-f', file)
    expect(code).toBe(1)
    expect(stdout.trim().split('\n')).toEqual([
      expect.stringMatching(
        /faulty\.yaml:\d+:\d+: GatewayPolicy default\/rules: spec\.traffic\.authorization\.policy\.matchExpressions\[1\]: unexpected b/,
      ),
      expect.stringContaining(
        'spec.targetRefs[0]: spec.frontend cannot target HTTPRoute; use Gateway',
      ),
      expect.stringContaining('HTTPRoute default/app: spec.rules[0].matches[0].path.value: '),
      expect.stringContaining('secretRef.name: Secret default/not-here is not in these files'),
      expect.stringContaining(
        'spec.parentRefs[0].name: Gateway default/edge is not in these files',
      ),
    ])
  })

  it('reads standard input', () => {
    const input = manifest(staticBackend('good', 1), onRoute('a b'))
    const told = spawnSync(launcher, ['validate', '-f', '-'], { input, encoding: 'utf8' })
    expect([told.status, told.stdout]).toEqual([
      1,
      expect.stringMatching(/^\(standard input\):\d+:\d+: GatewayPolicy default\/rules: /),
    ])
  })

  it('exits if one of its addresses is in use, and names it', async () => {
    const file = join(folder, 'alone.yaml')
    writeFileSync(file, manifest(staticBackend('main', 1)))
    const taken = `127.0.0.1:${upstream.port}`
    const args = ['run', '-f', file, '--ephemeral', '--readiness-address', taken]
    const off = ['--admin-address', 'off', '--stats-address', 'off']
    const { code, stderr } = await sluice(...args, ...off)
    expect(code).toBe(2)
    expect(stderr).toContain(`sluice: port is already in use: readiness address ${taken}`)
    expect(stderr).not.toContain('bug')
  })

  it('exits quietly if its output pipe is closed', () => {
    const piped = `set -o pipefail; "${launcher}" crds | head -n 1; echo $?`
    const { stdout, stderr } = spawnSync('bash', ['-c', piped], { encoding: 'utf8' })
    expect(stderr).toBe('')
    expect(stdout.trim().split('\n').at(-1)).toBe('0')
  })

  it('prints the definitions of all kinds', async () => {
    const { code, stdout } = await sluice('crds', '-o', 'json')
    expect(code).toBe(0)
    const { items } = JSON.parse(stdout) as { items: { spec: { names: { kind: string } } }[] }
    expect(items.map(({ spec }) => spec.names.kind).sort()).toEqual([
      'AgentgatewayModel',
      'GatewayBackend',
      'GatewayBudget',
      'GatewayParameters',
      'GatewayPolicy',
    ])
  })

  it.skipIf(process.getuid?.() === 0)('continues if a subfolder cannot be read', async () => {
    const { gw } = await start()
    const locked = join(gw.manifests, 'locked')
    mkdirSync(locked)
    chmodSync(locked, 0)
    await said(gw, /locked: .*(EACCES|permission)/)
    chmodSync(locked, 0o700)
  })
})
