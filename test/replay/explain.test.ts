import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { configRejected, createEvent, resourceDeleted } from '../../events/index.ts'
import { sluice } from '../support/gateway.ts'
import { gateway, httpRoute, manifest, policy } from '../support/manifests.ts'

let folder: string
let manifests: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-explain-'))
  manifests = join(folder, 'manifests.yaml')
  writeFileSync(
    manifests,
    manifest(
      gateway(80),
      httpRoute('app', { rules: [{ backendRefs: [{ name: 'nowhere', port: 80 }] }] }),
      policy('guard', 'HTTPRoute/app', { traffic: { csrf: { nope: true } } }),
    ),
  )
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('sluice explain', () => {
  it('shows conditions, events, the objects that were read, and what the proxy receives', async () => {
    const { code, stdout } = await sluice('explain', 'HTTPRoute', 'default/app', '-f', manifests)
    expect(code).toBe(0)
    expect(stdout).toContain('HTTPRoute default/app: generation 1 in force')
    expect(stdout).toMatch(/parent Gateway edge +ResolvedRefs +False +BackendNotFound/)
    expect(stdout).toMatch(/\d+ +\S+Z +resource\.applied +generation 1/)
    expect(stdout).toMatch(/http-route +Service default\/nowhere +does not exist/)
    expect(stdout).toMatch(/route-claims +Gateway default\/edge +generation 1/)
    expect(stdout).toMatch(/route\/HTTPRoute\/default\/app\/0 +[0-9a-f]{32}/)
  })

  it('prints the same as JSON, also from a recorded log', async () => {
    const exported = join(folder, 'exported.jsonl')
    writeFileSync(exported, (await sluice('log', '-f', manifests, '-o', 'json')).stdout)
    const { code, stdout } = await sluice(
      ...['explain', 'httproute', 'app', '--log-file', exported, '-o', 'json'],
    )
    expect(code).toBe(0)
    const explained = JSON.parse(stdout)
    expect(explained.object).toEqual({ kind: 'HTTPRoute', namespace: 'default', name: 'app' })
    expect(explained.generation).toBe(1)
    expect(explained.events).toMatchObject([{ type: 'resource.applied', detail: 'generation 1' }])
    expect(explained.reads).toContainEqual({
      stage: 'http-route',
      key: 'object:Service/default/nowhere',
      text: 'Service default/nowhere',
      state: 'does not exist',
    })
    expect(explained.resources).toMatchObject([{ resource: { type: 'route', ruleIndex: 0 } }])
    expect(explained.status.parents[0].conditions).toHaveLength(2)
  })

  it('shows rejections of the object by proxies', async () => {
    const { stdout: exported } = await sluice('log', '-f', manifests, '-o', 'json')
    const position = exported.trimEnd().split('\n').length + 1
    const key = 'listener/Gateway/default/edge/http'
    const data = { proxy: 'p', sequence: 3, key, code: 'port_in_use', message: 'port 80 is taken' }
    const context = { source: '/test', time: '2026-01-01T00:00:00.000Z', epoch: 0 }
    const event = createEvent(configRejected, context, { id: 'r', subject: 's', data })
    const path = join(folder, 'rejected.jsonl')
    writeFileSync(path, `${exported}${JSON.stringify({ position, event })}\n`)
    const { stdout } = await sluice('explain', 'Gateway', 'default/edge', '--log-file', path)
    expect(stdout).toContain(
      `${position}  2026-01-01T00:00:00.000Z  config.rejected   proxy p, ${key}: port`,
    )
    const route = await sluice('explain', 'HTTPRoute', 'default/app', '--log-file', path)
    expect(route.stdout).not.toContain('config.rejected')
  })

  it('shows why a version is refused, and which resources fail closed because of it', async () => {
    const { stdout } = await sluice('explain', 'GatewayPolicy', 'default/guard', '-f', manifests)
    expect(stdout).toContain('GatewayPolicy default/guard: not in force')
    expect(stdout).toMatch(/refused: generation 1: spec\.traffic\.csrf\.nope: unknown field/)
    expect(stdout).toContain('policy/traffic/default/guard/authorization/HTTPRoute/default/app')
  })

  it('accepts KIND NAME and KIND/NAME, and reports other refused objects on stderr', async () => {
    const told = await sluice('explain', 'HTTPRoute/default/app', '-f', manifests)
    expect([told.code, told.stdout]).toEqual([0, expect.stringContaining('HTTPRoute default/app:')])
    expect(told.stderr).toMatch(/manifests\.yaml:\d+:\d+: GatewayPolicy default\/guard: spec/)
    const args = ['explain', 'condition', 'HTTPRoute', 'default/app', '-f', manifests]
    expect((await sluice(...args)).stdout).toContain('BackendNotFound')
  })

  it('exits with 1 if the object is unknown', async () => {
    const { code, stderr } = await sluice('explain', 'Gateway', 'default/other', '-f', manifests)
    expect(code).toBe(1)
    expect(stderr).toContain('nothing is known about Gateway default/other')
  })

  it.each([
    [
      'another namespace',
      'HTTPRoute',
      'shop/app',
      'HTTPRoute shop/app; did you mean HTTPRoute default/app?',
    ],
    ['a misspelt kind', 'HTTProute2', 'shop/app', '; did you mean HTTPRoute default/app?'],
    ['another name', 'GatewayPolicy', 'x', 'of kind GatewayPolicy there is default/guard'],
    ['a kind without objects', 'TLSRoute', 'x', ': there is no TLSRoute'],
  ])('offers objects that exist for %s', async (_, kind, name, hint) => {
    const { code, stderr } = await sluice('explain', kind, name, '-f', manifests)
    expect([code, stderr]).toEqual([1, expect.stringContaining(hint)])
  })

  it('says in words what derivations have read', async () => {
    const edge = await sluice('explain', 'Gateway', 'default/edge', '-f', manifests)
    expect(edge.stdout).toContain('whether a proxy rejected listener http of Gateway default/edge')
    expect(edge.stdout).toContain('routes attached to listener http of Gateway default/edge')
    const app = await sluice('explain', 'HTTPRoute', 'default/app', '-f', manifests)
    expect(app.stdout).toContain('GRPCRoutes for any host on listener http of Gateway default/edge')
    expect(`${edge.stdout}${app.stdout}`).not.toMatch(/\b(fact|index|relation|value):/)
  })

  it('lists the deletion of another object that broke the object', async () => {
    const path = join(folder, 'broken.jsonl')
    const grant = {
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'ReferenceGrant',
      metadata: { name: 'carts', namespace: 'shop' },
      spec: {
        from: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', namespace: 'default' }],
        to: [{ group: '', kind: 'Service' }],
      },
    }
    const route = httpRoute('far', {
      rules: [{ backendRefs: [{ name: 'cart', namespace: 'shop', port: 80 }] }],
    })
    const granted = join(folder, 'granted.yaml')
    writeFileSync(granted, manifest(gateway(80), route, grant))
    const { stdout: exported } = await sluice('log', '-f', granted, '-o', 'json')
    const position = exported.trimEnd().split('\n').length + 1
    const context = { source: '/test', time: '2026-01-01T00:00:00.000Z', epoch: 0 }
    const applied = exported.split('\n').find((line) => line.includes('"kind":"ReferenceGrant"'))
    const { kind, namespace, name, uid, resourceVersion } = JSON.parse(applied ?? '').event.data
    const data = { kind, namespace, name, uid, resourceVersion, cause: 'watch' } as const
    const event = createEvent(resourceDeleted, context, { id: 'd', subject: 's', data })
    writeFileSync(path, `${exported}${JSON.stringify({ position, event })}\n`)
    const { stdout } = await sluice('explain', 'HTTPRoute', 'default/far', '--log-file', path)
    expect(stdout).toMatch(
      new RegExp(`\\n +${position} +\\S+ +resource\\.deleted +ReferenceGrant shop/carts, watch`),
    )
  })

  it.each([
    ['a name with too many parts', ['explain', 'Gateway', 'a/b/c']],
    ['two sources', ['explain', 'Gateway', 'default/edge', '--log-file', 'events.db']],
  ])('refuses %s as a usage error', async (_, args) => {
    const { code, stderr } = await sluice(...args, '-f', manifests)
    expect(code).toBe(2)
    expect(stderr).toMatch(/NAMESPACE\/NAME|name either manifests/)
  })
})
