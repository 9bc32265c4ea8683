/** No client gets an answer that it could not have got itself: random traffic against a model of the cache. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { useFixture, useFolder, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { manifest } from '../support/manifests.ts'
import { startNatsServer } from '../support/nats-server.ts'
import { describeWithParts } from '../support/parts.ts'
import { startRealRedis } from '../support/real-redis.ts'
import { startVendorA } from '../support/vendors/vendor-a.ts'
import { waitFor } from '../support/wait-for.ts'
import { Random } from '../virtual-time/random.ts'
import { AnswerModel, manifestsOf, type State, words } from './answer-model.ts'

const folder = useFolder('sluice-answers-')
const keyFile = join(folder, 'key')
writeFileSync(keyFile, 'a secret of all proxies')

const rounds = 6
const stepsPerRound = 40

async function checkStore(store: () => string, seed: number): Promise<void> {
  const ports = [await freePort(), await freePort()]
  const a = useFixture(startVendorA)
  const model = new AnswerModel(new Random(seed, 'answers'), ports)
  const proxies = ports.map((port) =>
    useGateway(() => ({
      manifests: manifestsOf(port, a.port, model.state),
      args: ['--session-key-file', keyFile, '--workers', '1'],
      env: { SLUICE_ANSWER_STORE: store() },
    })),
  )

  const ask = async (port: number, key: string) =>
    fetch(`http://127.0.0.1:${port}/masked/v1/chat/completions`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-sluice-cache': 'off',
        authorization: `Bearer ${key}`,
      },
      body: JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content: 'Hi' }] }),
    })

  /** Waits until both proxies have the new state. */
  async function change(state: State): Promise<void> {
    for (const [at, proxy] of proxies.entries()) {
      const port = ports[at] ?? 0
      await proxy.write('all.yaml', manifest(...manifestsOf(port, a.port, state)))
      await waitFor('the new guard', async () => {
        const text = await (await ask(port, 'key-of-ann')).text()
        return text.includes('answer') && !text.includes(state.masked)
      })
      await waitFor('the new keys', async () => {
        const response = await ask(port, 'key-of-bob')
        await response.text()
        return (response.status !== 401) === state.hasBob
      })
    }
    model.state = state
  }

  it(`serves only what the client could have got itself (seed ${seed})`, async () => {
    a.answer = model.answer
    for (let round = 0; round < rounds; round++) {
      if (round > 0) await change({ masked: words[round % 2] ?? '', hasBob: round % 3 < 2 })
      for (let step = 0; step < stepsPerRound; step++) expect(await model.step()).toEqual([])
    }
    // Otherwise nothing was checked.
    expect(model.hits).toBeGreaterThan(50)
    expect(model.sharedHits).toBeGreaterThan(10)
  }, 120_000)
}

describeWithParts(['redis'], 'answers that proxies share on Redis', async () => {
  const redis = useFixture(
    () => startRealRedis('p'),
    (server) => server.remove(),
  )
  await checkStore(() => `redis://default:p@127.0.0.1:${redis.port}/0`, 1)
})

describe('answers that proxies share on NATS', async () => {
  const nats = useFixture(startNatsServer, (server) => server.remove())
  await checkStore(() => nats.url, 2)
})
