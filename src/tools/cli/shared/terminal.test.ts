import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { counted, withCount } from './terminal.ts'

/** A stream that records what is written. */
function recorder(isTTY: boolean) {
  const written: string[] = []
  const stream = { isTTY, write: (text: string) => written.push(text) }
  return { written, stream: stream as unknown as NodeJS.WriteStream }
}

/** Counts 4,000 items, each of which takes a millisecond. */
const work = (stream: NodeJS.WriteStream) =>
  withCount(
    'events read',
    async (add) => {
      const items = Array.from({ length: 4_000 }, (_, n) => n)
      let last = -1
      for await (const item of counted(items, add)) {
        vi.advanceTimersByTime(1)
        last = item
      }
      return last
    },
    stream,
  )

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }))
afterEach(() => void vi.useRealTimers())

describe('progress of long work', () => {
  it('is one line of a terminal, which is removed at the end', async () => {
    const { written, stream } = recorder(true)
    expect(await work(stream)).toBe(3_999)
    const clear = '\r\u001b[K'
    expect(written[0]).toBe(`${clear}1,500 events read`)
    expect(written.at(-1)).toBe(clear)
    expect(written.length).toBeLessThan(10)
  })

  it('is not written elsewhere', async () => {
    const { written, stream } = recorder(false)
    expect(await work(stream)).toBe(3_999)
    expect(written).toEqual([])
  })
})
