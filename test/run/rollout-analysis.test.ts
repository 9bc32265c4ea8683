/** A policy that refuses some requests, and one that makes requests more expensive, reach one worker and are taken back. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import { aiBackend, gateway, manifest, policy, routeByPath } from '../support/manifests.ts'
import { json } from '../support/vendors/vendor.ts'
import { startVendorA } from '../support/vendors/vendor-a.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-rollout-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const catalog = join(folder, 'catalog.json')
const models = { 'm-1': { rates: { input: '2', output: '8' } } }
writeFileSync(catalog, JSON.stringify({ providers: { openai: { models } } }))

const parameters = {
  apiVersion: 'sluice.dev/v1alpha1',
  kind: 'GatewayParameters',
  metadata: { name: 'steps' },
  spec: {
    rollout: {
      steps: [{ proxies: 1 }],
      hold: '10m',
      analysis: ['Errors', 'Refusals', 'Costs'],
    },
  },
}
const parametersRef = { group: 'sluice.dev', kind: 'GatewayParameters', name: 'steps' }

const guests = policy('guests', 'Gateway/edge', {
  traffic: {
    authorization: {
      action: 'Deny',
      policy: { matchExpressions: ['request.headers["x-user"] == "guest"'] },
    },
  },
})

/** Adds a message, so that requests with one message cost twice as much. */
const prompt = policy('prompt', 'HTTPRoute/chat', {
  backend: { ai: { prompt: { prepend: [{ role: 'SYSTEM', content: 'Be kind.' }] } } },
})

describe('sluice run with a rollout that compares refusals and costs', async () => {
  const port = await freePort()
  const vendor = useFixture(startVendorA)
  const running = useGateway(() => {
    const provider = { vendorA: {}, host: '127.0.0.1', port: vendor.port }
    return {
      manifests: {
        'base.yaml': manifest(
          gateway(port, { infrastructure: { parametersRef } }),
          parameters,
          ...['chat', 'talk'].flatMap((name) => [routeByPath(name), aiBackend(name, { provider })]),
        ),
      },
      args: ['--workers', '2', '--model-catalog', catalog],
    }
  })

  beforeAll(() => {
    vendor.answer = ({ body }, response) => {
      const tokens = 1_000 * (body.messages as unknown[]).length
      const message = { role: 'assistant', content: 'Hi' }
      json(response, 200, {
        id: 'x',
        object: 'chat.completion',
        created: 1,
        model: body.model,
        choices: [{ index: 0, message, finish_reason: 'stop' }],
        usage: { prompt_tokens: tokens, completion_tokens: 1, total_tokens: tokens + 1 },
      })
    }
  })

  let sent = 0
  /** Sends a request over a new connection, so that any worker may get it. One in five is that of a guest. */
  async function ask(): Promise<void> {
    const path = sent % 2 === 0 ? '/chat' : '/talk'
    const user = sent++ % 5 === 0 ? 'guest' : 'member'
    await running.send(port, {
      path: `${path}/v1/chat/completions`,
      method: 'POST',
      headers: { connection: 'close', 'x-user': user },
      body: JSON.stringify({ model: 'm-1', messages: [{ role: 'user', content: 'Hello' }] }),
    })
  }

  interface Shown {
    readonly state: string
    readonly reason?: string
  }

  const shown = async (): Promise<readonly Shown[]> => {
    const args = ['rollout', 'status', '-o', 'json', '--log-file', running.logFile]
    return JSON.parse((await sluice(...args)).stdout).rollouts
  }

  /** Sends requests until the newest rollout was taken back, and returns why. */
  async function takenBack(): Promise<string> {
    const state = async () => {
      for (let at = 0; at < 40; at++) await ask()
      return (await shown()).map((one) => one.state)
    }
    await expect.poll(state, { timeout: 90_000, interval: 10 }).toEqual(['rolledBack'])
    const [{ reason = '' } = {}] = await shown()
    const text = await sluice('rollout', 'status', '--log-file', running.logFile)
    expect(text.stdout).toContain(reason)
    return reason
  }

  it('takes back a policy that refuses some requests of all routes, and names it', async () => {
    await ask()
    running.write('change.yaml', manifest(guests))
    expect(await takenBack()).toMatch(
      /^Gateway default\/edge, traffic\.authorization of GatewayPolicy default\/guests: \d+ of \d+ requests were refused with the change, 0 of \d+ without$/,
    )
  })

  it('takes back a policy that doubles the cost of requests, and names the model', async () => {
    running.write('change.yaml', manifest(prompt))
    expect(await takenBack()).toMatch(
      /^Gateway default\/edge, (model m-1|route default\/chat): \d+ of \d+ requests cost more than 0\.002048 USD with the change, 0 of \d+ without$/,
    )
  })
})
