/** `sluice top` shows what flows through a running gateway, from the time series of its admin address. */
import { setTimeout as after } from 'node:timers/promises'
import type { SeriesAnswer } from '../../../past/series/answer.ts'
import { type SeriesGroup, seriesGroups } from '../../../past/series/bucket.ts'
import { exitCode, type Output, UsageError } from '../shared/output.ts'
import { topText } from './text.ts'

export interface TopOptions {
  /** HOST:PORT of the admin server. */
  readonly admin: string
  readonly since: string
  readonly by?: readonly string[]
  readonly rows: string
  readonly once?: boolean
  readonly json?: boolean
}

const refreshMs = 2_000
const timeoutMs = 5_000
const clearScreen = '\u001b[H\u001b[2J\u001b[3J'

/** Refreshes a terminal until the process is stopped. @throws UsageError */
export async function top(options: TopOptions, output: Output): Promise<number> {
  const { json = false, once = false } = options
  if (json || once || !process.stdout.isTTY) {
    const answers = await askAll(options)
    output.print(
      json
        ? JSON.stringify({ groups: answers }, undefined, 2)
        : topText(answers, process.stdout.columns),
    )
    return answers[0]?.series.length === 0 ? exitCode.negative : exitCode.success
  }
  for (;;) {
    const answers = await askAll(options)
    const { columns, rows } = process.stdout
    const lines = topText(answers, columns).split('\n')
    // A screen that scrolls would lose its first lines.
    process.stdout.write(clearScreen)
    output.print(lines.slice(0, Math.max(1, rows - 1)).join('\n'))
    await after(refreshMs)
  }
}

/** The sum of everything comes first. */
async function askAll(options: TopOptions): Promise<SeriesAnswer[]> {
  const { by } = options
  const groups = seriesGroups.filter(
    (group) => group === 'all' || by === undefined || by.includes(group),
  )
  return Promise.all(groups.map((group) => ask(group, options)))
}

async function ask(by: SeriesGroup, { admin, since, rows }: TopOptions): Promise<SeriesAnswer> {
  const query = new URLSearchParams({ by, since, top: rows })
  const url = `http://${admin}/series?${query}`
  if (!URL.canParse(url)) throw new UsageError(`--admin ${admin} is not HOST:PORT`)
  const response = await fetch(url, { signal: AbortSignal.timeout(timeoutMs) }).catch(
    (error: Error) => {
      const cause = error.cause instanceof Error ? error.cause.message : error.message
      throw new UsageError(
        `no gateway answers at ${admin}: ${cause || 'no answer'}. --admin names the admin address of another one.`,
      )
    },
  )
  const text = await response.text()
  if (response.ok) return JSON.parse(text) as SeriesAnswer
  if (response.status === 400) throw new UsageError(`--since, --rows: ${text.trim()}`)
  throw new UsageError(`${admin} answers with ${response.status}: ${text.trim().slice(0, 200)}`)
}
