/** How fast texts are counted that were not counted before. */
import { cpuNanoseconds } from '../harness.ts'

/**
 * UTF-8 MB a second of this process's time, over a slice that is another one at every call. The first
 * slice is counted before, unmeasured: peers that ran meanwhile have emptied the processor's caches.
 * Their garbage is collected before too, or its collection would be part of this process's time.
 */
export function overSlices(
  texts: readonly string[],
  count: (text: string) => number,
): () => number {
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
export function warmUp(text: string, count: (text: string) => number): void {
  const end = performance.now() + 300
  while (performance.now() < end) count(text)
}
