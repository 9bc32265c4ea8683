/**
 * What the fold costs: microseconds an event (folding and deriving apart) and memory with 1,000 and
 * 10,000 HTTPRoutes, and one more change at each size. Then the same for a mixed log of 5,000 HTTPRoutes, and
 * the time to restore its state.
 * Claims: a change costs what it touches, so with ten times the routes it costs at most 1.3 times;
 * one change at 10,000 routes takes less than 2 ms; an event of the mixed log takes 15 µs, and the state is
 * restored in 0.3 s.
 */
import { fork } from 'node:child_process'
import { join } from 'node:path'
import type { FoldFigures } from './fold-run.ts'
import type { BenchContext, Row } from './harness.ts'
import type { MixedFigures } from './mixed-run.ts'

/** Runs a file of this folder in a process of its own. Returns the figures that it sends. */
function runApart<Figures>(file: string, ...numbers: readonly number[]): Promise<Figures> {
  const child = fork(join(import.meta.dirname, file), numbers.map(String), {
    execArgv: ['--expose-gc', '--disable-warning=ExperimentalWarning'],
  })
  return new Promise((resolve, reject) => {
    child.once('message', (figures) => resolve(figures as Figures))
    child.once('exit', (code) => {
      if (code !== 0) reject(new Error(`${file} ${numbers.join(' ')} ended with ${code}`))
    })
  })
}

/** Folding and deriving the events of a mixed log, and restoring its state. */
async function mixedRows({ rounds, quick, note }: BenchContext): Promise<Row[]> {
  const all: MixedFigures[] = []
  for (let round = 0; round < rounds; round++) {
    all.push(await runApart('mixed-run.ts', quick ? 15_000 : 60_000, quick ? 500 : 5_000))
    note(`mixed log: round ${round + 1} of ${rounds}`)
  }
  return [
    {
      id: 'fold.mixed',
      unit: 'µs',
      own: all.map(({ mixed }) => mixed),
      bound: { atMost: 15 },
      note: 'fold and derive, one core, mixed log',
    },
    {
      id: 'fold.restore',
      unit: 'ms',
      own: all.map(({ restore }) => restore),
      bound: { atMost: 300 },
    },
  ]
}

const units = { fold: 'µs', derive: 'µs', change: 'µs', resident: 'kB', heap: 'kB' } as const

export default async function fold(context: BenchContext): Promise<Row[]> {
  const { rounds, quick, note } = context
  const sizes = quick ? [200, 2_000] : [1_000, 10_000]
  const samples = new Map<number, FoldFigures[]>(sizes.map((size) => [size, []]))
  for (let round = 0; round < rounds; round++) {
    for (const [size, figures] of samples)
      figures.push(await runApart<FoldFigures>('fold-run.ts', size))
    note(`round ${round + 1} of ${rounds}`)
  }
  const of = (size: number | undefined, figure: keyof FoldFigures) =>
    (samples.get(size ?? 0) ?? []).map((figures) => figures[figure])
  const [small, large] = sizes
  const rows: Row[] = sizes.flatMap((size) =>
    (Object.keys(units) as (keyof FoldFigures)[]).map((figure) => ({
      id: `fold.${figure}.${size}`,
      unit: units[figure],
      own: of(size, figure),
      ...(figure === 'change' && size === large && { bound: { atMost: 2_000 } }),
    })),
  )
  const growth = (figure: 'fold' | 'derive' | 'change'): Row => ({
    id: `fold.${figure}.growth`,
    unit: 'µs',
    own: of(large, figure),
    peer: { name: `the same with ${small} routes`, samples: of(small, figure) },
    bound: { atMost: 1.3 },
  })
  const mixed = await mixedRows(context)
  return [...rows, growth('fold'), growth('derive'), growth('change'), ...mixed]
}
