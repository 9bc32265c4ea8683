/** How fast texts are counted that were not counted before, against the peers. */
import { setFlagsFromString } from 'node:v8'
import { countTokens as countByGptTokenizer } from 'gpt-tokenizer/encoding/o200k_base'
import { get_encoding } from 'tiktoken'
import { cpuNanoseconds, interleave, type Row } from '../harness.ts'
import { sliceTexts } from './token-texts.ts'

type Count = (text: string) => number

// Concurrent sweeping would add CPU time of earlier garbage to the next measurement.
setFlagsFromString('--no-concurrent-sweeping')
setFlagsFromString('--no-concurrent-array-buffer-sweeping')

const tiktoken = get_encoding('o200k_base')

/** The peers, for o200k_base. */
export const tokenPeers = {
  tiktoken: (text: string) => tiktoken.encode_ordinary(text).length,
  'gpt-tokenizer': (text: string) => countByGptTokenizer(text),
} as const

const kinds = ['english', 'code', 'chinese', 'emoji'] as const

interface TokenBench {
  /** Beginning of the ids of the rows. */
  readonly id: string
  readonly own: Count
  readonly rounds: number
  /** Characters of a slice. */
  readonly size: number
  /** At least how many times as fast as `tiktoken`. */
  readonly bounds: Readonly<Record<(typeof kinds)[number], number>>
}

/** A row for each kind of text and each peer. */
export async function tokenRows({ id, own, rounds, size, bounds }: TokenBench): Promise<Row[]> {
  // The first slice is for warming up; no round has it.
  const texts = sliceTexts(rounds + 1, size)
  const counters = { own, ...tokenPeers }
  const rows: Row[] = []
  for (const kind of kinds) {
    for (const count of Object.values(counters)) warmUp(texts[kind][0] ?? '', count)
    const samples = await interleave(rounds, {
      own: overSlices(texts[kind], counters.own),
      tiktoken: overSlices(texts[kind], counters.tiktoken),
      'gpt-tokenizer': overSlices(texts[kind], counters['gpt-tokenizer']),
    })
    for (const peer of ['tiktoken', 'gpt-tokenizer'] as const) {
      rows.push({
        id: `${id}.${kind}.${peer}`,
        unit: 'MB/s',
        own: samples.own,
        peer: { name: peer, samples: samples[peer] },
        as: 'speedup',
        ...(peer === 'tiktoken' && { bound: { atLeast: bounds[kind] } }),
      })
    }
  }
  return rows
}

/**
 * UTF-8 MB a second of this process's time, over a slice that is another one at every call. The first
 * slice is counted before, unmeasured: peers that ran meanwhile have emptied the processor's caches.
 * Their garbage is collected before too, or its collection would be part of this process's time.
 */
function overSlices(texts: readonly string[], count: Count): () => number {
  let turn = 0
  return () => {
    const text = texts[turn++ % texts.length] ?? ''
    const size = Buffer.byteLength(text)
    globalThis.gc?.()
    for (let i = 0; i < 3; i++) count(texts[0] ?? '')
    return (size * 1000) / cpuNanoseconds(() => count(text))
  }
}

/** Counts one text again and again, so that no round pays for compilation. */
function warmUp(text: string, count: Count): void {
  const end = performance.now() + 300
  while (performance.now() < end) count(text)
}
