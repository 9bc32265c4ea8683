import { createHash } from 'node:crypto'
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createEvent, definitionsObserved } from '../../events/index.ts'
import { validateObject } from '../../src/control/api/validate.ts'
import { exportLine } from '../../src/control/log/export-lines.ts'
import type { Recorded } from '../../src/control/log/index.ts'
import { controllerName } from '../../src/ground/model/api-names.ts'
import { useGateway } from '../support/fixture.ts'
import { FoldStory, type StoryObject } from '../support/fold-story.ts'
import { freePort, sluice } from '../support/gateway.ts'
import {
  gateway,
  httpRoute,
  type Manifest,
  manifest,
  policy,
  secret,
  service,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-what-if-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

let files = 0
function write(...objects: readonly Manifest[]): string {
  const path = join(folder, `${files++}.yaml`)
  writeFileSync(path, manifest(...objects))
  return path
}

async function whatIf(...args: string[]) {
  const { code, stdout, stderr } = await sluice('what-if', ...args, '-o', 'json')
  return { code, stderr, report: code === 2 ? undefined : JSON.parse(stdout) }
}

const route = (name: string, hostname: string, backend = 'main') =>
  httpRoute(name, { hostnames: [hostname], rules: [{ backendRefs: [toBackend(backend)] }] })
const cors = (name: string, target: string, origin: string) =>
  policy(name, target, { traffic: { cors: { allowOrigins: [origin] } } })
const header = (name: string, target: string, value: string) => {
  const set = [{ name: 'x-level', value: `'${value}'` }]
  return policy(name, target, { traffic: { transformation: { response: { set } } } })
}
const hashed = (password: string) =>
  `alice:{SHA}${createHash('sha1').update(password).digest('base64')}`
const edge = gateway(80)
const main = staticBackend('main', 81)
const app = route('app', 'a.example')
const nothing = { added: [], removed: [], changed: [] }

describe('sluice what-if between manifests', () => {
  it('reports nothing and exits with 0 if the candidate equals the present', async () => {
    const present = write(edge, main, app)
    const { code, stdout } = await sluice(
      'what-if',
      '--from',
      present,
      '-f',
      write(app, main, edge),
    )
    expect([code, stdout]).toEqual([0, 'nothing changes\n'])
  })

  it('reports objects, resources and conditions that change, and exits with 1', async () => {
    const present = write(edge, main, app, route('old', 'o.example'))
    const { code, report } = await whatIf(
      '--from',
      present,
      '-f',
      write(edge, main, route('app', 'a.example', 'gone'), route('new', 'n.example')),
    )
    expect(code).toBe(1)
    expect(report.objects).toEqual({
      added: [{ kind: 'HTTPRoute', namespace: 'default', name: 'new' }],
      changed: [{ kind: 'HTTPRoute', namespace: 'default', name: 'app' }],
      removed: [{ kind: 'HTTPRoute', namespace: 'default', name: 'old' }],
    })
    expect(report.resources).toEqual({
      added: ['route/HTTPRoute/default/new/0'],
      removed: ['route/HTTPRoute/default/old/0'],
      changed: ['route/HTTPRoute/default/app/0'],
    })
    expect(report.conditions).toContainEqual({
      object: { kind: 'HTTPRoute', namespace: 'default', name: 'app' },
      place: 'parent Gateway edge',
      type: 'ResolvedRefs',
      from: { status: 'True', reason: 'ResolvedRefs', message: '' },
      to: {
        status: 'False',
        reason: 'BackendNotFound',
        message: 'GatewayBackend default/gone does not exist',
      },
    })
    expect(report.requests).toEqual({
      total: 0,
      unchanged: 0,
      changed: 0,
      undecided: 0,
      groups: [],
      undecidedGroups: [],
    })
  })

  it('keeps the objects that an overlay does not contain', async () => {
    const present = write(edge, main, app)
    const overlay = write(route('new', 'n.example'))
    const { report } = await whatIf('--from', present, '-f', overlay, '--overlay')
    expect(report.resources).toEqual({ ...nothing, added: ['route/HTTPRoute/default/new/0'] })
    expect(report.objects.removed).toEqual([])
  })

  it('reports a listener that conflicts with an older one', async () => {
    const two = gateway(80, {
      listeners: [
        { name: 'http', port: 80, protocol: 'HTTP' },
        { name: 'other', port: 80, protocol: 'TCP' },
      ],
    })
    const { report } = await whatIf('--from', write(edge), '-f', write(two))
    expect(report.conflicts.map((one: { place: string }) => one.place)).toContain('listener other')
    expect(report.conflicts[0].to.reason).toBe('ProtocolConflict')
  })

  it('reports policies that others override, on the same target and by a more specific one', async () => {
    const base = [edge, main, app, cors('base', 'Gateway/edge', 'https://a.example')]
    const later = [
      cors('late', 'Gateway/edge', 'https://b.example'),
      header('level', 'Gateway/edge', 'gateway'),
      header('specific', 'HTTPRoute/app', 'route'),
    ]
    const { report } = await whatIf('--from', write(...base), '-f', write(...later), '--overlay')
    const name = (policy: string) => ({ kind: 'GatewayPolicy', namespace: 'default', name: policy })
    expect(report.overridden).toEqual(
      expect.arrayContaining([
        { policy: name('late'), field: 'traffic.cors', by: name('base'), places: 1 },
        {
          policy: name('level'),
          field: 'traffic.transformation',
          by: name('specific'),
          places: 1,
        },
      ]),
    )
  })

  it('compares the values of Secrets in manifests', async () => {
    const users = (password: string) => secret('users', { '.htaccess': hashed(password) })
    const basic = { traffic: { basicAuthentication: { secretRef: { name: 'users' } } } }
    const present = [edge, main, app, policy('basic', 'HTTPRoute/app', basic)]
    const from = write(...present, users('a'))
    expect((await whatIf('--from', from, '-f', write(...present, users('a')))).code).toBe(0)
    const { report } = await whatIf('--from', from, '-f', write(...present, users('b')))
    expect(report.objects.changed).toEqual([
      { kind: 'Secret', namespace: 'default', name: 'users' },
    ])
    expect(report.resources.changed).toHaveLength(1)
  })

  it('prints Markdown for a comment', async () => {
    const { code, stdout } = await sluice(
      'what-if',
      '--from',
      write(edge, main, app),
      '-f',
      write(edge, main),
      '-o',
      'markdown',
    )
    expect(code).toBe(1)
    expect(stdout).toMatch(/^<!-- sluice what-if -->\n## sluice what-if\n/)
    expect(stdout).toContain('| Resources | 1 |')
    expect(stdout).toContain('<details><summary>Objects (1)</summary>')
    expect(stdout).toContain('- HTTPRoute default/app')
  })

  it('fails only for the kinds of --fail-on', async () => {
    const args = ['--from', write(edge, main, app), '-f', write(edge, main)]
    expect((await sluice('what-if', ...args, '--fail-on', 'deny-to-allow,route')).code).toBe(0)
    expect((await sluice('what-if', ...args, '--fail-on', 'resource')).code).toBe(1)
    expect(await sluice('what-if', ...args, '--fail-on', 'deny')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^sluice: --fail-on deny is not one of deny-to-allow, /),
    })
  })

  it('exits with 2 if an input is missing, unreadable or not the only one', async () => {
    const present = write(edge)
    const broken = join(folder, 'broken.yaml')
    writeFileSync(broken, 'spec: [')
    const nowhere = join(folder, 'nowhere')
    const both = await whatIf('--from', present, '--nats', 'nats://127.0.0.1:1', '-f', present)
    expect(both.stderr).toContain('exactly one of --from, --log-file and --nats')
    expect((await whatIf('--from', present, '-f', broken)).stderr).toMatch(/broken\.yaml:\d+:\d+/)
    expect((await whatIf('--from', broken, '-f', present)).stderr).toMatch(/broken\.yaml:\d+:\d+/)
    expect((await whatIf('--from', present, '-f', nowhere)).stderr).toContain('does not exist')
    expect((await whatIf('--from', '-', '-f', '-')).code).toBe(2)
  })

  it('reports an invalid object of the candidate, and answers about the others', async () => {
    const invalid = httpRoute('app', { rules: 'none' })
    const args = ['--from', write(edge, main, app), '-f', write(edge, main, invalid)]
    const { code, report, stderr } = await whatIf(...args)
    expect(code).toBe(1)
    expect(stderr).toContain('HTTPRoute default/app: spec.rules')
    expect(report.refused).toEqual([
      { kind: 'HTTPRoute', namespace: 'default', name: 'app', problems: [expect.anything()] },
    ])
    expect(report.resources).toEqual(nothing)
  })
})

describe('sluice what-if after the log of a run', () => {
  const port = freePort()
  const users = secret('users', { '.htaccess': hashed('a') })
  const basic = policy('basic', 'HTTPRoute/app', {
    traffic: { basicAuthentication: { secretRef: { name: 'users' } } },
  })
  const objects = async () => [gateway(await port), main, app, basic, users]
  const running = useGateway(async () => ({ manifests: await objects() }))

  it('reports nothing for the manifests of the run, whose Secrets it compares by the key of the log', async () => {
    const args = ['--log-file', running.logFile, '-f']
    const same = await whatIf(...args, write(...(await objects())))
    expect([same.code, same.stderr, same.report.resources]).toEqual([0, '', nothing])
    const other = secret('users', { '.htaccess': hashed('b') })
    const { report } = await whatIf(...args, write(other), '--overlay')
    expect(report.resources).toMatchObject({ ...nothing, changed: [expect.any(String)] })
  })

  it('takes Secrets as unchanged if the key of the log is not there, and says so', async () => {
    const exported = join(folder, 'run.jsonl')
    const { stdout } = await sluice('log', '--log-file', running.logFile, '-o', 'json')
    writeFileSync(exported, stdout)
    const same = await whatIf('--log-file', exported, '-f', write(...(await objects())))
    expect(same.code).toBe(0)
    expect(same.stderr).toContain('count as unchanged: Secret default/users')
    copyFileSync(`${running.logFile}.key`, `${exported}.key`)
    const known = await whatIf('--log-file', exported, '-f', write(...(await objects())))
    expect([known.code, known.stderr]).toEqual([0, ''])
  })

  it('removes what a whole candidate lacks', async () => {
    const candidate = write(gateway(await port), main, app)
    const { report } = await whatIf('--log-file', running.logFile, '-f', candidate)
    expect(report.objects.removed.map(({ kind }: { kind: string }) => kind)).toEqual([
      'Secret',
      'GatewayPolicy',
    ])
    expect(report.resources.removed).toHaveLength(1)
  })
})

describe('sluice what-if after the log of a cluster', () => {
  const inCluster = (object: Manifest): StoryObject => {
    const one = object as unknown as StoryObject
    const metadata = {
      ...one.metadata,
      creationTimestamp: '2026-01-01T00:00:00Z',
    }
    const valid = validateObject({ ...one, metadata })
    if (!valid.ok) throw new Error(JSON.stringify(valid.problems))
    return valid.value as unknown as StoryObject
  }

  it('keeps Namespaces, Services and Secrets that a whole candidate lacks', async () => {
    const shop = httpRoute('app', { rules: [{ backendRefs: [{ name: 'shop', port: 80 }] }] })
    const gatewayClass = {
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'GatewayClass',
      metadata: { name: 'agentgateway' },
      spec: { controllerName },
    }
    const story = new FoldStory().record((context) =>
      createEvent(definitionsObserved, context, {
        id: 'definitions',
        subject: 'definitions',
        data: { versions: ['v1.4.0'] },
      }),
    )
    const present = [gatewayClass, edge, ...service('shop', [9]), shop, route('old', 'o.example')]
    story.apply(...present.map(inCluster))
    const log = join(folder, 'cluster.jsonl')
    writeFileSync(log, story.events.map((event) => exportLine(event as Recorded)).join(''))
    const { code, report } = await whatIf('--log-file', log, '-f', write(edge, shop))
    expect(code).toBe(1)
    expect(report.objects).toMatchObject({
      added: [],
      changed: [],
      removed: [{ kind: 'HTTPRoute', name: 'old' }],
    })
    expect(report.resources.changed).toEqual([])
    const same = await whatIf('--log-file', log, '-f', write(edge, shop, route('old', 'o.example')))
    expect(same.code).toBe(0)
  })
})
