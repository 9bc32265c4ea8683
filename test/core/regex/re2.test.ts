import { createRequire } from 'node:module'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { REGEX_PROGRAM_TOO_LARGE } from '../../../src/engines/core/abi.ts'
import { findPart } from '../../support/parts.ts'
import { Random, randomPattern, randomText } from './random-pattern.ts'
import { codeOf, type Pair, RawRegex } from './raw-regex.ts'

// Our engine against the native RE2 of the npm package `re2`, an optional peer that test/assets/setup
// makes. SLUICE_FUZZ_SECONDS and SLUICE_FUZZ_SEED as in fuzz.test.ts.
const seconds = Number(process.env.SLUICE_FUZZ_SECONDS ?? 0)
const seed = Number(
  process.env.SLUICE_FUZZ_SEED ?? (seconds > 0 ? Date.now() % 1_000_000 : 20261121),
)
const timeout = (seconds + 60) * 1000
const part = findPart('re2')
const absent = part.found ? {} : { skip: true, meta: { absentPart: part.reason } }

type Native = new (
  source: string,
  flags: string,
) => { match(text: Buffer): RegExpExecArray | null; lastIndex: number; exec(text: Buffer): unknown }

/** All matches in bytes: of a buffer the package answers byte offsets. */
function nativeSpans(regex: InstanceType<Native>, text: Buffer): Pair[] {
  const spans: Pair[] = []
  regex.lastIndex = 0
  for (;;) {
    const match = regex.exec(text) as { index: number; 0: Buffer } | null
    if (match === null) return spans
    const end = match.index + match[0].length
    spans.push([match.index, end])
    if (end > match.index) continue
    // After an empty match the search continues after the next character.
    let next = end + 1
    while (next < text.length && ((text[next] ?? 0) & 0xc0) === 0x80) next++
    if (next > text.length) return spans
    regex.lastIndex = next
  }
}

describe(`regex against native RE2, seed ${seed}`, absent, () => {
  it('finds the same spans in random texts of every alphabet', { timeout }, () => {
    const path = part.found ? part.path : ''
    const RE2: Native = createRequire(join(path, 'package.json'))('re2')
    const raw = new RawRegex()
    const random = new Random(seed)
    const end = Date.now() + seconds * 1000
    let compared = 0
    for (let round = 0; round < 3000 || Date.now() < end; round++) {
      const pattern = randomPattern(random, true)
      const { i, m, s } = pattern.flags
      const letters = `${i ? 'i' : ''}${m ? 'm' : ''}${s ? 's' : ''}`
      const native = new RE2(pattern.source, `gu${letters}`)
      const flags =
        (i ? codeOf('REGEX_CASE_INSENSITIVE') : 0) |
        (m ? codeOf('REGEX_MULTI_LINE') : 0) |
        (s ? codeOf('REGEX_DOT_ALL') : 0)
      const handle = raw.compile(Buffer.from(pattern.source), flags)
      if (handle === REGEX_PROGRAM_TOO_LARGE) continue
      expect(handle, `seed ${seed}: ${pattern.source}`).toBeGreaterThan(0)
      for (let text = 0; text < 6; text++) {
        const bytes = Buffer.from(randomText(random, pattern.alphabet, 14))
        const spans = nativeSpans(native, bytes)
        const where = `seed ${seed}: /${pattern.source}/${letters} on ${JSON.stringify(bytes.toString())}`
        expect(raw.spans(handle, bytes), where).toEqual(spans)
        compared += spans.length
      }
      raw.free(handle)
    }
    expect(compared).toBeGreaterThan(2000)
  })
})
