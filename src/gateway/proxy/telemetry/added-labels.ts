/** Labels that policies add to the metrics of requests. A series keeps all of them in one more label, as JSON. */
import type { MetricLabel } from '../../../ground/exchange/observe.ts'
import { LabelValues } from './label-values.ts'
import type { MetricDefinition, Series } from './metric-definitions.ts'

/** Maximum number of values of one label, because each value adds series. */
const maxValues = 100

export class AddedLabels {
  readonly #values = new Map<string, LabelValues>()

  /** Returns the text of the labels. Values beyond the limit become `_OTHER`. */
  textOf(labels: readonly MetricLabel[]): string {
    return JSON.stringify(labels.map(([name, value]) => [name, this.#valuesOf(name).of(value)]))
  }

  #valuesOf(name: string): LabelValues {
    let values = this.#values.get(name)
    if (values === undefined) {
      values = new LabelValues(maxValues)
      this.#values.set(name, values)
    }
    return values
  }
}

/** Returns the names and values of all labels of a series. */
export function allLabels(
  { labels: names }: MetricDefinition,
  { labels }: Series,
): { readonly names: readonly string[]; readonly values: readonly string[] } {
  const text = labels[names.length]
  // A series without added labels has no such text; the overflow series has another one.
  if (text === undefined || !text.startsWith('[')) return { names, values: labels }
  const added = JSON.parse(text) as readonly MetricLabel[]
  return {
    names: [...names, ...added.map(([name]) => name)],
    values: [...labels.slice(0, names.length), ...added.map(([, value]) => value)],
  }
}
