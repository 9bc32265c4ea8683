/** `sluice validate` of what a chart or a whole cluster contains, of which it reads only a part. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { status } from '../../src/tools/cli/status/status.ts'
import { launcher } from '../support/gateway.ts'
import { gateway, manifest } from '../support/manifests.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-skipped-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const object = (apiVersion: string, kind: string, name = 'app') => ({
  apiVersion,
  kind,
  metadata: { name },
})

function validate(objects: readonly Readonly<Record<string, unknown>>[], ...args: string[]) {
  const input = manifest(...objects)
  const spawned = spawnSync(launcher, ['validate', '-f', '-', ...args], { input, encoding: 'utf8' })
  const { status: code, stdout, stderr } = spawned
  return { code, stdout: stdout.trim(), stderr: stderr.trim() }
}

describe('sluice validate', () => {
  it('counts objects that do not concern gateways in one line on standard error', () => {
    const others = [
      ...['a', 'b', 'c'].map((name) => object('apps/v1', 'Deployment', name)),
      object('v1', 'ServiceAccount'),
      object('networking.istio.io/v1', 'Gateway'),
    ]
    expect(validate([gateway(8080), ...others])).toEqual({
      code: 0,
      stdout: '',
      stderr:
        'every object is valid\nskipped 5 objects of kinds that Sluice does not read: Deployment (3), Gateway (1), ServiceAccount (1)',
    })
  })

  it('names at most 8 of the skipped kinds', () => {
    const kinds = 'ABCDEFGHIJ'.split('').map((letter) => object('example.com/v1', `Kind${letter}`))
    const { stderr } = validate(kinds)
    const named = 'ABCDEFGH'.split('').map((letter) => `Kind${letter} (1)`)
    expect(stderr).toBe(
      `no object was found\nskipped 10 objects of kinds that Sluice does not read: ${named.join(', ')}, 2 other kinds`,
    )
  })

  it('refuses unknown kinds and versions of its own group and of the Gateway API by name', () => {
    const { code, stdout } = validate([
      object('sluice.dev/v1alpha1', 'GatewayPolice'),
      object('gateway.networking.k8s.io/v9', 'HTTPRoute'),
      object('apps/v1', 'Deployment'),
    ])
    expect(code).toBe(1)
    expect(stdout.split('\n')).toEqual([
      expect.stringMatching(
        /^\(standard input\):\d+:\d+: GatewayPolice app: kind: .*GatewayPolicy\?$/,
      ),
      expect.stringMatching(/^\(standard input\):\d+:\d+: HTTPRoute app: apiVersion: .* known: /),
    ])
  })

  it('warns by name of extensions of the Gateway API and of other versions of kinds that it reads', () => {
    const { code, stdout, stderr } = validate([
      object('gateway.networking.x-k8s.io/v1alpha1', 'XMesh'),
      object('inference.networking.k8s.io/v9', 'InferencePool'),
      object('discovery.k8s.io/v9', 'EndpointSlice'),
    ])
    expect({ code, stderr }).toEqual({ code: 0, stderr: 'no object was found' })
    expect(stdout.split('\n')).toEqual([
      '(standard input):3:3: warning: XMesh app: kind: gateway.networking.x-k8s.io/v1alpha1 XMesh is not read and has no effect',
      '(standard input):11:3: warning: InferencePool app: kind: inference.networking.k8s.io/v9 InferencePool is not read and has no effect',
      expect.stringMatching(/ EndpointSlice app: kind: discovery.k8s.io\/v9 EndpointSlice is not /),
    ])
  })

  it('leaves skipped objects out of reports for other tools', () => {
    const { stdout } = validate([object('apps/v1', 'Deployment')], '--format', 'sarif')
    expect(JSON.parse(stdout).runs[0].results).toEqual([])
  })
})

describe('sluice status', () => {
  it('counts skipped objects in one line too', async () => {
    const file = join(folder, 'chart.yaml')
    writeFileSync(file, manifest(gateway(8080), object('apps/v1', 'Deployment')))
    const reported: string[] = []
    await status({ file: [file] }, (text) => reported.push(text))
    expect(reported).toEqual([
      'skipped 1 object of kinds that Sluice does not read: Deployment (1)',
    ])
  })
})
