import { describe, expect, it } from 'vitest'
import { openStream, sendEvent } from '../support/vendors/vendor.ts'
import { chunk } from '../support/vendors/vendor-a.ts'
import { waitFor } from '../support/wait-for.ts'
import { a, ask, metrics, openai, running, swapped } from './model-telemetry-rig.ts'

/** The page size of WebAssembly memory, which fragmentation may add. */
const page = 65_536

describe('memory of the core', () => {
  const memory = async () =>
    Number(/^sluice_core_pattern_memory_bytes (\d+)/m.exec(await metrics())?.[1])

  async function swap(from: number, to: number): Promise<void> {
    for (let turn = from; turn < to; turn++) {
      running.write('swapped.yaml', swapped(turn))
      await waitFor(`turn ${turn}`, async () => {
        const { data } = await openai('swapped').models.list()
        return data.some(({ id }) => id === `turn-${turn}`)
      })
      await openai('swapped').chat.completions.create(ask)
    }
  }

  it('does not grow when policies with masks are replaced', async () => {
    await swap(1, 6)
    const before = await memory()
    expect(before).toBeGreaterThan(0)
    await swap(6, 26)
    expect(await memory()).toBeLessThanOrEqual(before + page)
  })

  it('does not grow when clients leave streams that are masked', async () => {
    const leave = async (times: number) => {
      const left = Array.from({ length: times }, async () => {
        const stream = await openai('masked').chat.completions.create({ ...ask, stream: true })
        for await (const _ of stream) break
        stream.controller.abort()
      })
      await Promise.all(left)
      await waitFor('the vendor to be left', () => a.aborted === times)
      a.aborted = 0
    }
    a.answer = (_, response) => {
      openStream(response)
      sendEvent(response, chunk('m', { content: 'call +1 415 555' }))
      sendEvent(response, chunk('m', { content: ' and so on, for a long time' }))
    }
    await leave(40)
    const before = await memory()
    for (const _ of [1, 2, 3]) await leave(40)
    expect(await memory()).toBeLessThanOrEqual(before + page)
  })
})
