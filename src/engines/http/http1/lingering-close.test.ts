import { beforeEach, expect, it } from 'vitest'
import { ManualClock } from '../../../../test/support/manual-clock.ts'
import type { EngineParts } from '../contracts/engine-parts.ts'
import { defaultLimits } from '../limits/engine-limits.ts'
import type { Transport } from '../sockets/transport.ts'
import { TimerWheel } from '../time/timer-wheel.ts'
import { LingeringClose } from './lingering-close.ts'

const stallTimeoutMs = 10_000
/** What `backlog` says, and whether the connection was dropped. */
let transport: { backlog: number; closed: boolean }
let clock: ManualClock
let closing: LingeringClose
const counters = { connectionsOpen: 0 }

/** Sockets of the system hold more than a client can leave unread in a test, so the transport is made here. */
beforeEach(() => {
  clock = new ManualClock()
  counters.connectionsOpen = 1
  const made = {
    ...{ backlog: 20_000, closed: false, end: () => {}, resume: () => {} },
    destroy: () => {
      made.closed = true
    },
  }
  transport = made
  const parts = {
    ...{ connections: new Set(), timers: new TimerWheel(clock), counters },
    limits: { ...defaultLimits, stallTimeoutMs },
    onActivityEnded: () => {},
  }
  closing = new LingeringClose(parts as unknown as EngineParts, {
    port: 80,
    tls: undefined,
    transport: made as unknown as Transport,
  })
})

it('waits for a silent client as long as it has to read its response', () => {
  clock.advance(stallTimeoutMs - 2_500)
  expect(transport.closed).toBe(false)
  transport.backlog = 0
  clock.advance(1_500)
  expect(transport.closed).toBe(false)
  clock.advance(5_000)
  expect(transport.closed).toBe(true)
  expect(counters.connectionsOpen).toBe(0)
})

it('drops a client that reads nothing for as long as a response may stall', () => {
  clock.advance(stallTimeoutMs + 5_000)
  expect(transport.closed).toBe(true)
})

it('drops a client that has read everything and is silent, or that sends without an end', () => {
  transport.backlog = 0
  for (let second = 0; second < 25; second++) {
    closing.onBytes()
    clock.advance(1_000)
  }
  expect(transport.closed).toBe(false)
  for (let second = 0; second < 10; second++) {
    closing.onBytes()
    clock.advance(1_000)
  }
  expect(transport.closed).toBe(true)
})
