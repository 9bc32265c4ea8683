/** What a change means for requests to language models, whose outcomes depend on bodies that are not recorded. */
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
const parameters = {
  apiVersion: 'sluice.dev/v1alpha1',
  kind: 'GatewayParameters',
  metadata: { name: 'costs' },
  spec: { changeProtection: { mode: 'Hold', maxUndecided: '70%', maxCostIncrease: '10%' } },
}
const parametersRef = { group: 'sluice.dev', kind: 'GatewayParameters', name: 'costs' }
const running = useGateway(() => ({
  manifests: {
    'base.yaml': manifest(
      parameters,
      gateway(port, { infrastructure: { parametersRef } }),
      routeByPath('chat'),
      staticBackend('plain', vendor.port),
      routeByPath('plain'),
    ),
    'chat.yaml': manifest(chat(vendorA, guard('secret'))),
  },
  args: ['--record', 'all', '--record-dir', records],
}))

const waiting = { timeout: 30_000, interval: 200 }
const heldChanges = async () =>
  JSON.parse((await sluice('approve', '-o', 'json', '--log-file', running.logFile)).stdout).held

beforeAll(async () => {
  vendor.answer = completes('hello')
  for (const content of ['hello', 'my secret']) {
    const body = JSON.stringify({ model: 'gpt-4o-mini', messages: [{ role: 'user', content }] })
    const headers = { 'content-type': 'application/json' }
    const path = '/chat/v1/chat/completions'
    await running.send(port, { method: 'POST', path, headers, body })
  }
  await running.send(port, { path: '/plain' })
})

describe('changeProtection with maxCostIncrease', () => {
  it('holds a change to a more expensive model, or to one without a price', async () => {
    for (const [model, message] of [
      [
        'gpt-4o',
        /^1 recorded requests .* would cost [\d.]+ USD instead of [\d.]+ USD; at most 10%/,
      ],
      [
        'unpriced',
        /^the cost of 1 recorded .* would be unknown \(1 because the catalog has no price\)/,
      ],
    ] as const) {
      running.write('chat.yaml', manifest(chat({ vendorA: { model } }, guard('secret'))))
      const unmet = { condition: 'maxCostIncrease', gateway: 'default/edge' }
      await expect
        .poll(async () => (await heldChanges()).flatMap((one: Manifest) => one.unmet), waiting)
        .toEqual([{ ...unmet, message: expect.stringMatching(message) }])
    }
    running.write('chat.yaml', manifest(chat(vendorA, guard('secret'))))
    await expect.poll(async () => (await heldChanges()).length, waiting).toBe(0)
    await running.stop()
  })
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

/** Runs `sluice what-if` and returns the costs, and the reports as text and Markdown. */
async function costs(...candidate: Manifest[]) {
  const file = join(folder, 'candidate.yaml')
  writeFileSync(file, manifest(...candidate))
  const args = ['--log-file', running.logFile, '-f', file, '--overlay', '--record-dir', records]
  const outputs = ['json', 'text', 'markdown'].map((output) =>
    sluice('what-if', ...args, '-o', output),
  )
  const [json, text, markdown] = (await Promise.all(outputs)).map(({ stdout }) => stdout)
  return { costs: JSON.parse(json ?? '').requests.costs, text, markdown }
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

  it('reports what the tokens would cost at another model, and nothing for refused requests', async () => {
    const expensive = chat({ vendorA: { model: 'gpt-4o' } }, guard('secret'))
    const { costs: change, text, markdown } = await costs(expensive)
    expect(change).toEqual({
      before: '0.00000585',
      after: '0.0000975',
      difference: '0.00009165',
      requests: 1,
      changed: 1,
      undecided: 0,
      unknown: [],
    })
    const line =
      '1 request: 0.00000585 USD now, 0.0000975 USD after the change (+0.00009165 USD, +1570%), by weight'
    expect(text).toContain(`Requests to models whose cost changes or is unknown (1)\n  ${line}\n`)
    expect(markdown).toContain(line)
    const refusing = await costs(
      policy('closed', 'HTTPRoute/chat', {
        traffic: { authorization: { policy: { matchExpressions: ['false'] } } },
      }),
    )
    expect(refusing.costs).toMatchObject({ before: '0.00000585', after: '0', changed: 1 })
  })

  it('reports no change if only another backend changes', async () => {
    const { code, groups, undecidedGroups } = await whatIf(
      policy('plain', 'GatewayBackend/plain', { backend: { tcp: { connectTimeout: '2s' } } }),
    )
    expect([code, groups, undecidedGroups]).toEqual([expect.any(Number), [], []])
  })
})
