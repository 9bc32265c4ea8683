/**
 * Claim: a million charges fold in at most five seconds of CPU time, whether each is an event of its own or a report
 * has many, also with 100,000 balances and in rolling windows. Also measured: a ledger of a million charges is opened
 * from its file, and from the snapshot that it has left.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Ledger } from '../../src/control/ledger/ledger.ts'
import { LedgerFold } from '../../src/control/ledger/ledger-fold.ts'
import { openEmbeddedLog } from '../../src/control/log/index.ts'
import { type BenchContext, cpuNanoseconds, interleave, type Row } from '../harness.ts'
import { type LedgerScene, LedgerWriter, month, rollingDay } from './events.ts'

/** Events that are made at a time, so that they do not fill the heap while the fold is measured. */
const batchSize = 1_000

/** Seconds of CPU time to fold the charges. */
function fold(scene: LedgerScene, charges: number): number {
  const folded = new LedgerFold()
  const writer = new LedgerWriter(scene)
  for (const recorded of writer.beginning()) folded.apply(recorded)
  let nanoseconds = 0
  for (let left = charges / scene.chargesAReport; left > 0; left -= batchSize) {
    const batch = Array.from({ length: Math.min(batchSize, left) }, () => writer.report())
    nanoseconds += cpuNanoseconds(() => {
      for (const recorded of batch) folded.apply(recorded)
    })
  }
  let counted = 0
  for (const { requests } of folded.budgets.values()) counted += requests
  if (counted !== charges) throw new Error(`${counted} of ${charges} charges were counted`)
  return nanoseconds / 1e9
}

/** Writes the charges to a log in a file. */
async function writeLog(file: string, scene: LedgerScene, charges: number): Promise<void> {
  const { log } = openEmbeddedLog(file)
  const writer = new LedgerWriter(scene)
  await log.append(Array.from(writer.beginning(), ({ event }) => event))
  for (let left = charges / scene.chargesAReport; left > 0; left -= batchSize) {
    const count = Math.min(batchSize, left)
    await log.append(Array.from({ length: count }, () => writer.report().event))
  }
  await log.close()
}

/** Seconds of CPU time to open the ledger. If it has no snapshot yet, it leaves one. */
async function open(file: string, requests: number): Promise<number> {
  const { log } = openEmbeddedLog(file)
  const before = process.cpuUsage()
  const ledger = await new Ledger({ log, isSole: true, onProblem: () => undefined }).open()
  const { user, system } = process.cpuUsage(before)
  let counted = 0
  for (const budget of ledger.fold.budgets.values()) counted += budget.requests
  if (counted !== requests) throw new Error(`${counted} of ${requests} charges were read`)
  await ledger.close()
  await log.close()
  return (user + system) / 1e6
}

export default async function folds({ rounds, quick, note }: BenchContext): Promise<Row[]> {
  const charges = quick ? 100_000 : 1_000_000
  const common = { budgets: 1_000, values: 100, holders: 4, chargesAReport: 1, window: month }
  const scenes = {
    'single-charges': common,
    'reports-of-100': { ...common, chargesAReport: 100 },
    rolling: { ...common, window: rollingDay },
    '50-holders': { ...common, holders: 50 },
  }
  const samples = await interleave(
    rounds,
    Object.fromEntries(
      Object.entries(scenes).map(([name, scene]) => [name, () => fold(scene, charges)]),
    ),
  )
  const bound = { atMost: charges / 200_000 }
  const rows: Row[] = Object.entries(samples).map(([name, own]) => ({
    id: `money.fold.${name}`,
    unit: 's',
    own,
    bound,
    note: `${charges} charges, 100,000 balances`,
  }))
  note('opens ledgers')
  return [...rows, ...(await openRows(charges, quick ? 2 : 3))]
}

async function openRows(charges: number, rounds: number): Promise<Row[]> {
  const scene = { budgets: 1_000, values: 100, holders: 4, chargesAReport: 10, window: month }
  const [fromLog, fromSnapshot]: [number[], number[]] = [[], []]
  for (let round = 0; round < rounds; round++) {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
    try {
      const file = join(folder, 'ledger.db')
      await writeLog(file, scene, charges)
      fromLog.push(await open(file, charges))
      fromSnapshot.push(await open(file, charges))
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }
  const note = `${charges} charges in reports of ten, 100,000 balances`
  return [
    { id: 'money.open.log', unit: 's', own: fromLog, note },
    { id: 'money.open.snapshot', unit: 's', own: fromSnapshot, note },
  ]
}
