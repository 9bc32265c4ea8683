/** Months of a ledger in virtual time: every hour is charged in windows of all kinds, in many time zones. */
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { BudgetWindow, HolderReport, HolderUpdate } from '../../ground/model/budgets.ts'
import { MemoryLog } from '../log/index.ts'
import type { BudgetDefinition } from './budget-state.ts'
import { Ledger } from './ledger.ts'

const hour = 3_600_000
const zones = [
  'UTC',
  'Europe/Berlin',
  'America/New_York',
  // Half an hour of daylight saving.
  'Australia/Lord_Howe',
  'Asia/Kathmandu',
  // Daylight saving begins and ends at midnight: some days begin at one o'clock, and one hour of others comes twice.
  'America/Santiago',
  'Africa/Cairo',
]
const units = ['Hour', 'Day', 'Week', 'Month'] as const

const budgets = new Map(
  zones.flatMap((timeZone) =>
    units.map((unit): [string, BudgetDefinition] => {
      const id = `${unit} ${timeZone}`
      const window: BudgetWindow = { type: 'Calendar', unit, timeZone }
      const amount = { unit: 'Tokens', amount: '1000000000', overrides: {} } as const
      return [id, { id, name: id, generation: 1, ...amount, window }]
    }),
  ),
)

const formats = new Map(
  zones.map((timeZone) => [
    timeZone,
    new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'short' }),
  ]),
)

/** What a person in the time zone would call the window: its first date, or its hour. */
function nameOf({ unit, timeZone }: BudgetWindow, time: number): string {
  const [date = '', clock = ''] = formats.get(timeZone)?.format(time).split(' ') ?? []
  if (unit === 'Month') return date.slice(0, 7)
  if (unit === 'Day') return date
  if (unit === 'Hour') {
    // An hour that comes twice is two hours. Where the clocks move by half an hour, the two overlap.
    const [, minutes = '0'] = clock.split(':')
    return `${Math.floor((time - Number(minutes) * 60_000) / 60_000)}`
  }
  const day = new Date(`${date}T00:00:00Z`)
  day.setUTCDate(day.getUTCDate() - ((day.getUTCDay() + 6) % 7))
  return day.toISOString().slice(0, 10)
}

/** A holder that charges every budget once for each call. */
function connectHolder(ledger: Ledger) {
  const windows = new Map<string, number>()
  let message = 0
  const receive = (update: HolderUpdate) => {
    for (const { budget, window } of update.windows) windows.set(budget, window)
  }
  const connection = ledger.connect('proxy~1', receive)
  const charge = (charged: bigint) => {
    message++
    const common = { value: '', charged, returned: 0n, requests: 1, want: 0n, isDrained: false }
    const entries = Array.from(windows, ([budget, window]) => ({
      ...common,
      budget,
      window,
      granted: 0n,
    }))
    const report: HolderReport = { holder: 'proxy~1', sequence: message, message, entries }
    connection.report(report)
  }
  return { windows, charge }
}

const spentOf = (ledger: Ledger, id: string): bigint => {
  const slices = ledger.fold.budgets.get(id)?.balances.get('')?.context.slices ?? {}
  return Object.values(slices).reduce((sum, charged) => sum + charged, 0n)
}

/** Runs a ledger through the times, and compares every window with what was charged in it. */
async function runThrough(times: readonly number[]): Promise<Ledger> {
  vi.useFakeTimers({ toFake: ['Date'], now: times[0] ?? 0 })
  const log = new MemoryLog()
  const ledger = await new Ledger({ log, isSole: true, onProblem: expect.unreachable }).open()
  ledger.configure(budgets)
  const { windows, charge } = connectHolder(ledger)
  const expected = new Map<string, bigint>()
  // A clock that is set back opens no window, so the latest time of all counts.
  let latest = 0
  for (const [step, time] of times.entries()) {
    vi.setSystemTime(time)
    latest = Math.max(latest, time)
    await ledger.settled()
    const amount = BigInt(step + 1)
    charge(amount)
    await ledger.settled()
    const before = new Map(windows)
    for (const [id, { window }] of budgets) {
      const key = `${id}: ${nameOf(window, latest)}`
      expected.set(key, (expected.get(key) ?? 0n) + amount)
      expect(`${key} ${spentOf(ledger, id)}`, new Date(time).toISOString()).toBe(
        `${key} ${expected.get(key)}`,
      )
      expect(windows.get(id)).toBeGreaterThanOrEqual(before.get(id) ?? 1)
    }
  }
  const sum = times.reduce((total, _, step) => total + step + 1, 0)
  for (const { charged } of ledger.fold.budgets.values()) expect(charged).toBe(BigInt(sum))
  await ledger.close()
  await log.close()
  return ledger
}

/** Times an hour apart, at other minutes each. */
const hours = (from: number, count: number): number[] =>
  Array.from({ length: count }, (_, step) => from + step * hour + ((step * 37) % 60) * 60_000)

describe('calendar windows of a ledger, charged every hour', () => {
  afterEach(() => {
    vi.useRealTimers()
  })

  // In each of the two months, clocks of some zones go forward and of others back.
  it('have exactly what was charged between their local beginnings, from March to April', async () => {
    await runThrough(hours(Date.UTC(2026, 2, 25), 24 * 33))
  }, 300_000)

  it('have exactly what was charged between their local beginnings, from October to November', async () => {
    await runThrough(hours(Date.UTC(2026, 9, 2), 24 * 34))
  }, 300_000)

  it('stay as they are while a clock that jumped forward is set back', async () => {
    const from = Date.UTC(2026, 2, 27)
    const day = 24 * hour
    await runThrough([
      ...hours(from, 20),
      // Three days ahead, over the change of the clocks and the end of a week; then back.
      ...hours(from + 3 * day, 10),
      ...hours(from + day, 24 * 6),
    ])
  }, 300_000)
})
