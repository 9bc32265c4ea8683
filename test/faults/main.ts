/**
 * `npm run faults`: every fault in the midst of many changes, against real parts. First an undisturbed
 * run; each disturbed one must come to the same desired state and the same statuses.
 */

import { type Fault, faults } from './faults.ts'
import { planOf } from './plan.ts'
import { Run, type RunResult, Stage } from './scene.ts'

export interface FaultOptions {
  readonly names: readonly string[]
  readonly seed: number
  readonly changes: number
  /** Faults that have not begun by then are skipped and listed. */
  readonly withinMs: number
  readonly tell: (text: string) => void
}

export interface FaultRow extends Partial<RunResult> {
  readonly name: string
  readonly about: string
  readonly ok: boolean
  readonly problems: readonly string[]
}

const undisturbed: Fault = {
  name: 'undisturbed',
  about: 'no fault: what the others are compared with',
  strike: async () => undefined,
}

async function runOne(stage: Stage, fault: Fault, options: FaultOptions): Promise<RunResult> {
  const plan = planOf(options.seed, options.changes)
  const prepared = await fault.prepare?.(stage)
  const run = await Run.start(stage, plan, prepared?.kubeconfigOf)
  try {
    const began = performance.now()
    await Promise.all([run.applyAll(), fault.strike(run, prepared)])
    await run.atRest()
    return await run.finish(began)
  } catch (error) {
    for (const [name, { stderr }] of run.replicas) {
      options.tell(`--- replica ${name} said at last:\n${stderr.split('\n').slice(-15).join('\n')}`)
    }
    for (const problem of run.problems) options.tell(`--- ${problem}`)
    throw error
  } finally {
    await run.dispose()
    prepared?.close()
    await stage.clear(plan)
  }
}

const same = (a: RunResult, b: RunResult) =>
  a.digests.desired === b.digests.desired && a.digests.statuses === b.digests.statuses

/** Runs the named faults, or all if none is named. Rejects if the undisturbed run fails. */
export async function runFaults(options: FaultOptions): Promise<FaultRow[]> {
  const { names, tell, withinMs } = options
  const chosen = faults.filter(({ name }) => names.length === 0 || names.includes(name))
  const began = performance.now()
  const stage = await Stage.start()
  const rows: FaultRow[] = []
  try {
    const base = await runOne(stage, undisturbed, options)
    rows.push({ ...undisturbed, ...base, ok: base.problems.length === 0 })
    tell(lineOf(rows[0] as FaultRow))
    for (const fault of chosen) {
      const { name, about } = fault
      if (performance.now() - began > withinMs) {
        rows.push({ name, about, ok: false, problems: ['not run: the time was up'] })
        continue
      }
      const row = await runOne(stage, fault, options).then(
        (result): FaultRow => {
          const problems = same(base, result)
            ? result.problems
            : [...result.problems, 'the last state is another one than undisturbed']
          return { name, about, ...result, problems, ok: problems.length === 0 }
        },
        (error): FaultRow => ({ name, about, ok: false, problems: [String(error)] }),
      )
      rows.push(row)
      tell(lineOf(row))
    }
    return rows
  } finally {
    await stage.end()
  }
}

export function lineOf({ name, ok, problems, ...result }: FaultRow): string {
  const { changes = 0, seconds = 0, events = 0, writes = 0, conflicts = 0, requests = 0 } = result
  const figures = `${changes} changes in ${seconds.toFixed(1)} s, ${events} events, ${writes} status writes (${(writes / Math.max(1, changes)).toFixed(2)} a change, ${conflicts} conflicts), ${requests} requests`
  const wrong = problems.slice(0, 20).map((text) => `\n    ${text}`)
  return `${ok ? 'ok    ' : 'FAILED'} ${name}: ${figures}${wrong.join('')}`
}

export const faultNames = faults.map(({ name, about }) => ({ name, about }))
