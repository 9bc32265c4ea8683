/**
 * Claims: on text not seen before, from strings, counting the tokens of o200k_base is at least 20
 * times as fast as `tiktoken` in English, 8 times in code, 10 times in Chinese and emoji; and a long
 * run of one letter takes time in proportion to its length. A process that has the core loads
 * the vocabulary in at most 15 ms.
 */
import { countTokens, loadEncoding } from '../../src/engines/core/tokens.ts'
import { type BenchContext, cpuNanoseconds, interleave, median, type Row } from '../harness.ts'
import { tokenPeers, tokenRows } from './token-speed.ts'
import { measureStart } from './token-start.ts'

const own = (text: string) => countTokens(text, 'o200k_base')

/** Milliseconds for so many times the letter a, and some more at each call: peers remember words. */
const overLetters = (length: number, count: (text: string) => number) => {
  let more = 0
  return () => {
    const text = 'a'.repeat(length + more++)
    return cpuNanoseconds(() => count(text)) / 1e6
  }
}

export default async function tokens({ quick, rounds, note }: BenchContext): Promise<Row[]> {
  loadEncoding('o200k_base')
  const rows = await tokenRows({
    id: 'core.tokens',
    own,
    rounds,
    size: quick ? 40_000 : 130_000,
    bounds: { english: 20, code: 8, chinese: 10, emoji: 10 },
  })
  const letters = await interleave(Math.min(rounds, 3), {
    own: overLetters(20_000, own),
    'ten times': overLetters(200_000, own),
    tiktoken: overLetters(20_000, tokenPeers.tiktoken),
    'gpt-tokenizer': overLetters(20_000, tokenPeers['gpt-tokenizer']),
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
  const { alone, withCore } = await interleave(rounds, {
    alone: () => measureStart('second'),
    withCore: () => measureStart('first'),
  })
  rows.push({ id: 'core.tokens.start', unit: 'ms', own: alone, bound: { atMost: 15 } })
  rows.push({ id: 'core.tokens.start.with-core', unit: 'ms', own: withCore })
  return rows
}
