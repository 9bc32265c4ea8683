/**
 * Claims: on text not seen before, from strings, counting the tokens of o200k_base is at least 15
 * times as fast as `tiktoken` in English, 8 times in code, 5 times in Chinese and emoji; and a long
 * run of one letter takes time in proportion to its length.
 */
import { countTokens as countByGptTokenizer } from 'gpt-tokenizer/encoding/o200k_base'
import { get_encoding } from 'tiktoken'
import { countTokens, loadEncoding } from '../../src/core/tokens.ts'
import { type BenchContext, cpuNanoseconds, interleave, median, type Row } from '../harness.ts'
import { overSlices, warmUp } from './token-speed.ts'
import { sliceTexts } from './token-texts.ts'

const tiktoken = get_encoding('o200k_base')
const counters = {
  own: (text: string) => countTokens(text, 'o200k_base'),
  tiktoken: (text: string) => tiktoken.encode_ordinary(text).length,
  'gpt-tokenizer': (text: string) => countByGptTokenizer(text),
}
const bounds = { english: 15, code: 8, chinese: 5, emoji: 5 } as const
const kinds = Object.keys(bounds) as (keyof typeof bounds)[]

/** Milliseconds for so many times the letter a, and some more at each call: peers remember words. */
const overLetters = (length: number, count: (text: string) => number) => {
  let more = 0
  return () => {
    const text = 'a'.repeat(length + more++)
    return cpuNanoseconds(() => count(text)) / 1e6
  }
}

export default async function tokens({ quick, rounds, note }: BenchContext): Promise<Row[]> {
  const texts = sliceTexts(rounds + 1, quick ? 40_000 : 130_000)
  loadEncoding('o200k_base')
  const rows: Row[] = []
  for (const kind of kinds) {
    // The first slice is for warming up; no round has it.
    for (const count of Object.values(counters)) warmUp(texts[kind][0] ?? '', count)
    const samples = await interleave(rounds, {
      own: overSlices(texts[kind], counters.own),
      tiktoken: overSlices(texts[kind], counters.tiktoken),
      'gpt-tokenizer': overSlices(texts[kind], counters['gpt-tokenizer']),
    })
    for (const peer of ['tiktoken', 'gpt-tokenizer'] as const) {
      rows.push({
        id: `core.tokens.${kind}.${peer}`,
        unit: 'MB/s',
        own: samples.own,
        peer: { name: peer, samples: samples[peer] },
        as: 'speedup',
        ...(peer === 'tiktoken' && { bound: { atLeast: bounds[kind] } }),
      })
    }
  }
  const letters = await interleave(Math.min(rounds, 3), {
    own: overLetters(20_000, counters.own),
    'ten times': overLetters(200_000, counters.own),
    tiktoken: overLetters(20_000, counters.tiktoken),
    'gpt-tokenizer': overLetters(20_000, counters['gpt-tokenizer']),
  })
  note(
    `200,000 letters take ${(median(letters['ten times']) / median(letters.own)).toFixed(1)} times as long as 20,000`,
  )
  for (const peer of ['tiktoken', 'gpt-tokenizer'] as const) {
    rows.push({
      id: `core.tokens.letters.${peer}`,
      unit: 'ms',
      own: letters.own,
      peer: { name: peer, samples: letters[peer] },
      as: 'speedup',
    })
  }
  rows.push({
    id: 'core.tokens.letters.ten-times',
    unit: 'ms',
    own: letters['ten times'],
    peer: { name: '20,000 letters', samples: letters.own },
    as: 'cost',
  })
  return rows
}
