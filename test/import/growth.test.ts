import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { inputs } from './growth-inputs.ts'

const compilers = ['--no-opt', '--no-maglev', '--no-sparkplug']
const sizes = [40, 80, 160]

interface Work {
  readonly work: number
  readonly objects: number
}

describe('the work of sluice import', () => {
  const probe = join(import.meta.dirname, 'growth-probe.ts')
  const printed = execFileSync(process.execPath, [...compilers, probe, ...sizes.map(String)], {
    encoding: 'utf8',
  })
  const measured = JSON.parse(printed) as Readonly<Record<string, readonly Work[]>>

  it.each(Object.keys(inputs))('grows linearly with the input (%s)', (source) => {
    const [small, medium, large] = measured[source] ?? []
    if (small === undefined || medium === undefined || large === undefined) throw new Error(source)
    expect(small.objects).toBeGreaterThan(0)
    expect(small.work).toBeGreaterThan(1000)
    // Twice the added input adds twice the work; 10 % are for texts that become longer.
    expect((large.work - medium.work) / (medium.work - small.work)).toBeLessThan(2.2)
  })
})
