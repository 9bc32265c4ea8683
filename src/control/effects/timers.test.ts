import { afterEach, describe, expect, it } from 'vitest'
import type { SluiceEvent } from '../../../events/index.ts'
import { waitFor } from '../../../test/support/wait-for.ts'
import { Timers, type TimersOptions } from './timers.ts'

const at = (ms: number) => new Date(ms).toISOString()

let timers: Timers | undefined
afterEach(() => timers?.close())

function start(options: Partial<TimersOptions> = {}) {
  const told: SluiceEvent[] = []
  const clock = { now: () => 1_000_000 }
  timers = new Timers({
    clock,
    epoch: () => 3,
    append: (events) => void told.push(...events),
    graceMs: 0,
    ...options,
  })
  return { timers, told }
}

describe('timers of the fold', () => {
  it('wait without a warning for a time that is further away than a timer can be', async () => {
    const warnings: Error[] = []
    const note = (warning: Error) => void warnings.push(warning)
    process.on('warning', note)
    try {
      const { timers, told } = start()
      timers.want([{ timer: 'far', dueAt: at(1_000_000 + 800 * 86_400_000) }])
      // Node emits the warning and fires such a timer at once.
      timers.want([
        { timer: 'near', dueAt: at(1_000_000) },
        { timer: 'far', dueAt: at(8e13) },
      ])
      await waitFor('the event that is due', () => told.length > 0)
      timers.want([{ timer: 'far', dueAt: at(8e13) }])
      await new Promise(setImmediate)
      expect(warnings).toEqual([])
    } finally {
      process.off('warning', note)
    }
  })

  it('fire once when they are due, with the epoch of the lease, and not before', async () => {
    const { timers, told } = start()
    const due = { timer: 'silent:p', dueAt: at(999_000) }
    const later = { timer: 'silent:q', dueAt: at(9_000_000) }
    timers.want([due, later])
    await waitFor('the event', () => told.length > 0)
    timers.want([due, later])
    timers.want([due, later, { timer: 'absent:a/b', dueAt: at(1_000_000) }])
    await waitFor('the other event', () => told.length > 1)
    expect(told).toMatchObject([
      { type: 'dev.sluice.timer.fired.v1', epoch: 3, data: due },
      { data: { timer: 'absent:a/b' } },
    ])
    expect(told[0]?.id).toBe(`3:timer:silent:p:${due.dueAt}`)
  })

  it('fire again if the append failed, and wait while another replica writes', async () => {
    let failures = 2
    let asked = 0
    const told: SluiceEvent[] = []
    const { timers } = start({
      epoch: () => (++asked > 1 ? 1 : undefined),
      append: async (events) => {
        if (failures-- > 0) throw new Error('no log')
        told.push(...events)
      },
    })
    timers.want([{ timer: 'x', dueAt: at(0) }])
    await waitFor('the event', () => told.length === 1)
    expect(failures).toBe(-1)
  })
})
