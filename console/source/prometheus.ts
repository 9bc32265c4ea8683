/** Reads the Prometheus text format, as far as Sluice writes it. */

export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

const line = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/
const label = /(\w+)="((?:[^"\\]|\\.)*)",?/g
const escapes: Readonly<Record<string, string>> = { n: '\n' }

export function readMetrics(text: string): Sample[] {
  const samples: Sample[] = []
  for (const row of text.split('\n')) {
    const [, name, labels = '', value] = line.exec(row) ?? []
    if (name === undefined) continue
    const pairs = [...labels.matchAll(label)].map(([, key = '', raw = '']) => [
      key,
      raw.replace(/\\(.)/g, (_, char: string) => escapes[char] ?? char),
    ])
    samples.push({ name, labels: Object.fromEntries(pairs), value: Number(value) })
  }
  return samples
}

/** Sums the samples of a metric by the values of some labels. */
export function sumBy(
  samples: readonly Sample[],
  name: string,
  by: readonly string[],
): { readonly labels: readonly string[]; readonly value: number }[] {
  const sums = new Map<string, { labels: string[]; value: number }>()
  for (const sample of samples) {
    if (sample.name !== name) continue
    const labels = by.map((key) => sample.labels[key] ?? '')
    const key = JSON.stringify(labels)
    const sum = sums.get(key) ?? { labels, value: 0 }
    sum.value += sample.value
    sums.set(key, sum)
  }
  return [...sums.values()].sort((a, b) => b.value - a.value)
}
