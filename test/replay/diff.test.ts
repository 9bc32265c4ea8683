import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sluice } from '../support/gateway.ts'
import { gateway, httpRoute, manifest, staticBackend, toBackend } from '../support/manifests.ts'

let folder: string
let before: string
let after: string

function write(name: string, ...objects: readonly Readonly<Record<string, unknown>>[]): string {
  const path = join(folder, name)
  writeFileSync(path, manifest(...objects))
  return path
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-diff-'))
  const route = (name: string, hostname: string) =>
    httpRoute(name, { hostnames: [hostname], rules: [{ backendRefs: [toBackend('main')] }] })
  before = write('before.yaml', gateway(80), route('app', 'a.example'), route('old', 'o.example'))
  after = write(
    'after.yaml',
    gateway(80),
    staticBackend('main', 81),
    route('app', 'a.example'),
    httpRoute('new', { rules: [{}] }),
  )
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('sluice diff', () => {
  it('exits with 0 and prints nothing if both states are the same', async () => {
    expect(await sluice('diff', before, before)).toEqual({ code: 0, stdout: '', stderr: '' })
  })

  it('lists statuses that differ, and resources that were added, removed and changed', async () => {
    const { code, stdout } = await sluice('diff', before, after)
    expect(code).toBe(1)
    expect(stdout.split('\n')).toEqual(
      expect.arrayContaining([
        'HTTPRoute default/app',
        '  - parent Gateway edge: ResolvedRefs=False BackendNotFound: GatewayBackend default/main does not exist',
        '  + parent Gateway edge: ResolvedRefs=True ResolvedRefs',
        'HTTPRoute default/old',
        '  + no status',
        '- route/HTTPRoute/default/old/0',
        '+ backend/default/main',
        '+ route/HTTPRoute/default/new/0',
        '~ route/HTTPRoute/default/app/0',
      ]),
    )
    expect(stdout).not.toContain('listener/')
  })

  it('prints the same differences as JSON, and accepts a log on either side', async () => {
    const exported = join(folder, 'after.jsonl')
    writeFileSync(exported, (await sluice('log', '-f', after, '-o', 'json')).stdout)
    expect((await sluice('diff', after, exported)).code).toBe(0)
    const { code, stdout } = await sluice('diff', before, exported, '-o', 'json')
    expect(code).toBe(1)
    const { statuses, resources } = JSON.parse(stdout)
    expect(resources).toEqual({
      added: ['backend/default/main', 'route/HTTPRoute/default/new/0'],
      removed: ['route/HTTPRoute/default/old/0'],
      changed: ['route/HTTPRoute/default/app/0'],
    })
    expect(statuses.map(({ object }: { object: { name: string } }) => object.name)).toEqual([
      'main',
      'app',
      'new',
      'old',
    ])
  })

  it('compares two positions of one log, and ignores proxy statuses if only one side has them', async () => {
    const log = join(import.meta.dirname, '../../examples/weighted-split/recorded.jsonl')
    const { code, stdout } = await sluice('diff', `${log}@24`, log)
    expect([code, stdout]).toEqual([1, expect.stringContaining('~ route/HTTPRoute/default/shop/')])
    expect(stdout).toContain('Programmed=True')
    const against = await sluice('diff', log, dirname(log))
    expect(against.stdout).not.toMatch(/Programmed|addresses/)
  })

  it('exits with 2 and reports the reason if a side does not exist or cannot be read', async () => {
    const { code, stderr } = await sluice('diff', before, join(folder, 'nowhere'))
    expect(code).toBe(2)
    expect(stderr).toContain('does not exist')
    const broken = join(folder, 'broken.yaml')
    writeFileSync(broken, 'spec: [')
    expect(await sluice('diff', before, broken)).toEqual({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(/broken\.yaml:\d+:\d+: not YAML/),
    })
  })
})
