/**
 * What the fold costs: microseconds an event (folding and deriving apart) and memory with 1,000 and
 * 10,000 HTTPRoutes, and one more change at each size.
 * Claims: a change costs what it touches, so with ten times the routes it costs at most 1.3 times;
 * one change at 10,000 routes takes less than 2 ms.
 */
import { fork } from 'node:child_process'
import { join } from 'node:path'
import type { FoldFigures } from './fold-run.ts'
import type { BenchContext, Row } from './harness.ts'

function foldApart(routes: number): Promise<FoldFigures> {
  const child = fork(join(import.meta.dirname, 'fold-run.ts'), [`${routes}`], {
    execArgv: ['--expose-gc', '--disable-warning=ExperimentalWarning'],
  })
  return new Promise((resolve, reject) => {
    child.once('message', (figures) => resolve(figures as FoldFigures))
    child.once('exit', (code) => {
      if (code !== 0) reject(new Error(`folding ${routes} routes ended with ${code}`))
    })
  })
}

const units = { fold: 'µs', derive: 'µs', change: 'µs', resident: 'kB', heap: 'kB' } as const

export default async function fold({ rounds, quick, note }: BenchContext): Promise<Row[]> {
  const sizes = quick ? [200, 2_000] : [1_000, 10_000]
  const samples = new Map<number, FoldFigures[]>(sizes.map((size) => [size, []]))
  for (let round = 0; round < rounds; round++) {
    for (const [size, figures] of samples) figures.push(await foldApart(size))
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
  return [...rows, growth('fold'), growth('derive'), growth('change')]
}
