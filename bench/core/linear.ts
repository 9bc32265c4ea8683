/**
 * Claim: what makes backtracking engines explode takes time in proportion here: ten times the text,
 * at most 1.5 times the time for each byte. Patterns, masks of builtins and token counts.
 */
import { compileMask, type MaskRule } from '../../src/engines/core/regex-mask.ts'
import { countTokens } from '../../src/engines/core/tokens.ts'
import { type BenchContext, cpuNanoseconds, interleave, type Row } from '../harness.ts'

const builtins = (['Ssn', 'CreditCard', 'PhoneNumber', 'Email', 'CaSin'] as const).map(
  (builtin) => ({ builtin, replacement: `<${builtin}>` }),
)
const pattern = (source: string): MaskRule[] => [{ pattern: source, replacement: '<x>' }]

function masker(rules: readonly MaskRule[]): (text: string) => unknown {
  const outcome = compileMask(rules)
  if (!outcome.ok) throw new Error(outcome.message)
  return (text) => outcome.mask.apply(text)
}

/** What runs, on what repeated, to how many bytes at most. */
const shapes: readonly (readonly [string, (text: string) => unknown, string, number])[] = [
  ['nested-repetition', masker(pattern('(a+)+$')), 'aaaaaaaaaaaaaaa!', 1_000_000],
  ['nested-repetition.one-letter', masker(pattern('(a+)+b|c')), 'a', 5_000_000],
  ['digits', masker(builtins), '1234567890', 100_000],
  ['at-signs', masker(builtins), '@', 1_000_000],
  ['at-soup', masker(builtins), 'a@@b@.c@ab.@', 1_000_000],
  ['one-letter', masker(builtins), 'a', 5_000_000],
  ['email-pattern', masker(pattern('[a-z.]{1,64}@[a-z.]{1,64}')), 'a@', 100_000],
  ['tokens.one-letter', (text) => countTokens(text, 'o200k_base'), 'a', 5_000_000],
  ['tokens.spaces', (text) => countTokens(text, 'o200k_base'), ' ', 1_000_000],
]

export default async function linear({ quick, rounds }: BenchContext): Promise<Row[]> {
  const rows: Row[] = []
  for (const [id, work, unit, bytes] of shapes) {
    const large = unit.repeat((quick ? bytes / 5 : bytes) / unit.length)
    const small = large.slice(0, large.length / 10)
    /** Nanoseconds for each byte; the small text as often as takes as long. */
    const cost = (text: string) => () => {
      const times = Math.ceil(2_000_000 / text.length)
      const spent = cpuNanoseconds(() => {
        for (let i = 0; i < times; i++) work(text)
      })
      return spent / (times * text.length)
    }
    const samples = await interleave(rounds, { large: cost(large), small: cost(small) })
    rows.push({
      id: `core.linear.${id}`,
      unit: 'ns',
      own: samples.large,
      peer: { name: 'a tenth of the text', samples: samples.small },
      as: 'cost',
      bound: { atMost: 1.5 },
      note: `each of ${large.length} bytes`,
    })
  }
  return rows
}
