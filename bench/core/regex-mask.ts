/**
 * Claims: masking the five builtins, string to string, is at least ten times as fast as the same five
 * patterns in JavaScript's RegExp on prose; text full of digits, dashes and at signs is no slower than
 * theirs; a streamed delta of 64 bytes costs less than a microsecond; a key that begins with a literal is
 * found faster than by RegExp; each further builtin costs at most 5 % of the throughput on prose. Where test/assets/setup has made the native `re2`, prose is masked at
 * least five times as fast as by it, and the worst text no slower.
 * The patterns of the RegExp side are the usual ones, with the Luhn check in a callback.
 */
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { builtinNames } from '../../src/engines/core/regex-builtins.ts'
import { compileMask, type Mask, type MaskRule } from '../../src/engines/core/regex-mask.ts'
import { findPart } from '../../test/support/parts.ts'
import { type BenchContext, cpuNanoseconds, interleave, type Row } from '../harness.ts'
import {
  keyPattern,
  maskTexts,
  rateOf,
  rules,
  sentence,
  through,
  throughRegExp,
} from './mask-peers.ts'

const names = ['Ssn', 'CreditCard', 'PhoneNumber', 'Email', 'CaSin'] as const

function maskOf(rules: readonly MaskRule[]): Mask {
  const outcome = compileMask(rules)
  if (!outcome.ok) throw new Error(outcome.message)
  return outcome.mask
}

const builtins = maskOf(names.map((builtin) => ({ builtin, replacement: `<${builtin}>` })))
const keys = maskOf([{ pattern: '\\bsk-[A-Za-z0-9]{20,}', replacement: '<masked>' }])

/** The same by the native package, or why it is not there. */
function native(): { mask: (text: string) => string; key: (text: string) => string } | string {
  const part = findPart('re2')
  if (!part.found) return part.reason
  const RE2 = createRequire(join(part.path, 'package.json'))('re2')
  const key = new RE2(keyPattern)
  return {
    mask: through(rules.map(([pattern, replacement]) => [new RE2(pattern), replacement])),
    key: (text) => text.replace(key, '<masked>'),
  }
}

const delta = sentence.slice(0, 64)
const deltas = 20_000

/** Nanoseconds for each of many deltas of 64 bytes through one stream. */
function costOfDelta(): number {
  using stream = builtins.stream()
  const spent = cpuNanoseconds(() => {
    for (let i = 0; i < deltas; i++) stream.push(delta)
  })
  stream.end()
  return spent / deltas
}

/** What each builtin besides the five costs on prose. */
async function costsOfBuiltins(rounds: number, times: number): Promise<Row[]> {
  const rows: Row[] = []
  for (const builtin of builtinNames) {
    if ((names as readonly string[]).includes(builtin)) continue
    using more = maskOf([...names, builtin].map((each) => ({ builtin: each, replacement: '<x>' })))
    const samples = await interleave(rounds, {
      own: () => rateOf((each) => more.apply(each), maskTexts.prose, times),
      five: () => rateOf((each) => builtins.apply(each), maskTexts.prose, times),
    })
    rows.push({
      id: `core.mask.prose.with-${builtin}`,
      unit: 'MB/s',
      own: samples.own,
      peer: { name: 'the five builtins', samples: samples.five },
      as: 'speedup',
      bound: { atLeast: 0.95 },
    })
  }
  return rows
}

export default async function mask({ quick, rounds, note }: BenchContext): Promise<Row[]> {
  const times = quick ? 50 : 400
  const re2 = native()
  if (typeof re2 === 'string') note(`nothing is compared with re2: ${re2}`)
  const few = { prose: times / 5, matches: times / 5, digits: times / 10, ats: times / 10 }
  const many = { prose: times * 4, matches: times, digits: times / 5, ats: times / 5 }
  const kinds = ['prose', 'matches', 'digits', 'ats'] as const
  const rows: Row[] = []
  const bounds: Readonly<Record<string, readonly [regExp?: number, re2?: number]>> = {
    prose: [10, 5],
    matches: [10, 5],
    digits: [undefined, 1],
    ats: [undefined, 1],
    key: [1, undefined],
  }
  const add = (id: string, peer: string, own: readonly number[], samples: readonly number[]) => {
    const atLeast = bounds[id]?.[peer === 'RegExp' ? 0 : 1]
    rows.push({
      id: `core.mask.${id}${peer === 'RegExp' ? '' : `.${peer}`}`,
      unit: 'MB/s',
      own,
      peer: { name: peer, samples },
      as: 'speedup',
      ...(atLeast !== undefined && { bound: { atLeast } }),
    })
  }
  for (const kind of [...kinds, 'key'] as const) {
    const text = kind === 'key' ? maskTexts.prose : maskTexts[kind]
    const [often, rarely] = kind === 'key' ? [times * 4, times] : [many[kind], few[kind]]
    const ours = kind === 'key' ? keys : builtins
    const theirs =
      kind === 'key' ? (each: string) => each.replace(keyPattern, '<masked>') : throughRegExp
    const native = typeof re2 === 'string' ? undefined : re2[kind === 'key' ? 'key' : 'mask']
    const samples = await interleave(rounds, {
      own: () => rateOf((each) => ours.apply(each), text, often),
      RegExp: () => rateOf(theirs, text, rarely),
      re2: () => (native === undefined ? 0 : rateOf(native, text, rarely)),
    })
    add(kind, 'RegExp', samples.own, samples.RegExp)
    if (native !== undefined) add(kind, 're2', samples.own, samples.re2)
  }
  rows.push(...(await costsOfBuiltins(rounds, times)))
  const { delta } = await interleave(rounds, { delta: costOfDelta })
  rows.push({ id: 'core.mask.delta', unit: 'ns', own: delta, bound: { atMost: 1000 } })
  return rows
}
