/** `sluice what-if` for backends of language models, whose outcomes depend on bodies that are not recorded. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { useFixture, useFolder, useGateway } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import {
  aiBackend,
  gateway,
  type Manifest,
  manifest,
  policy,
  routeByPath,
  staticBackend,
} from '../support/manifests.ts'
import { completes, startVendorA } from '../support/vendors/vendor-a.ts'

const folder = useFolder('sluice-what-if-models-')
const records = join(folder, 'records')
const vendor = useFixture(startVendorA)
const port = await freePort()
const routes = { '/v1/chat/completions': 'Completions' }
const at = () => ({ host: '127.0.0.1', port: vendor.port })
const guard = (...matches: string[]) => ({
  request: [{ regex: { matches, action: 'Reject' } }],
})
const chat = (provider: Manifest, promptGuard: Manifest) =>
  aiBackend('chat', { provider: { ...provider, ...at() } }, { ai: { routes, promptGuard } })
const vendorA = { vendorA: {} }
const running = useGateway(() => ({
  manifests: [
    gateway(port),
    chat(vendorA, guard('secret')),
    routeByPath('chat'),
    staticBackend('plain', vendor.port),
    routeByPath('plain'),
  ],
  args: ['--record', 'all', '--record-dir', records],
}))

beforeAll(async () => {
  vendor.answer = completes('hello')
  for (const content of ['hello', 'my secret']) {
    const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content }] })
    const headers = { 'content-type': 'application/json' }
    const path = '/chat/v1/chat/completions'
    await running.send(port, { method: 'POST', path, headers, body })
  }
  await running.send(port, { path: '/plain' })
  await running.stop()
})

async function whatIf(...candidate: Manifest[]) {
  const file = join(folder, 'candidate.yaml')
  writeFileSync(file, manifest(...candidate))
  const args = ['--log-file', running.logFile, '-f', file, '--overlay', '--requests', records]
  const { code, stdout, stderr } = await sluice('what-if', ...args, '-o', 'json')
  expect(stderr).toBe('')
  const { total, undecidedGroups, groups } = JSON.parse(stdout).requests
  return { code, total, undecidedGroups, groups }
}

describe('sluice what-if for backends of language models', () => {
  it('reports requests as undecided if the guards of their backend change', async () => {
    expect(await whatIf(chat(vendorA, guard('secret', 'hello')))).toEqual({
      code: 3,
      total: 3,
      groups: [],
      undecidedGroups: [
        {
          reason: 'backend: GatewayBackend default/chat changes, and bodies are not recorded',
          count: 2,
          examples: [expect.anything(), expect.anything()],
        },
      ],
    })
  })

  it('reports requests that go to another provider', async () => {
    const { code, groups, undecidedGroups } = await whatIf(chat({ vendorC: {} }, guard('secret')))
    expect([code, undecidedGroups]).toEqual([1, []])
    expect(groups).toMatchObject([
      {
        kinds: ['provider'],
        from: 'allow by vendorA',
        to: 'allow by vendorC',
        count: 1,
        cause: expect.stringMatching(
          /^GatewayBackend default\/chat changed \(spec\.ai\.provider\./,
        ),
      },
    ])
  })

  it('reports no change if only another backend changes', async () => {
    const { code, groups, undecidedGroups } = await whatIf(
      policy('plain', 'GatewayBackend/plain', { backend: { tcp: { connectTimeout: '2s' } } }),
    )
    expect([code, groups, undecidedGroups]).toEqual([expect.any(Number), [], []])
  })
})
