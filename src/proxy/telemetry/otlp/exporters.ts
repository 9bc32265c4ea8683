import { hostname } from 'node:os'
import type { Attribute, TracingRules } from '../../../exchange/observe.ts'
import { SpanExporter } from './exporter.ts'
import type { CollectorAddress } from './senders.ts'
import type { FinishedSpan } from './span.ts'

/** Where a policy is in force: its collector is resolved with the policies of that place. */
export interface TracedPlace {
  /** `namespace/name`. */
  readonly gateway: string
}

interface ExportersOptions<Place extends TracedPlace> {
  readonly version: string
  readonly resolve: (
    rules: TracingRules,
    place: Place,
  ) => CollectorAddress | Promise<CollectorAddress>
  readonly onSpans: (exported: number, dropped: number) => void
}

/** One exporter for each policy and Gateway; those that are not used any more end by themselves. */
export class SpanExporters<Place extends TracedPlace> {
  readonly #options: ExportersOptions<Place>
  readonly #byRules = new WeakMap<TracingRules, Map<string, SpanExporter>>()
  readonly #all = new Set<WeakRef<SpanExporter>>()

  constructor(options: ExportersOptions<Place>) {
    this.#options = options
  }

  add(rules: TracingRules, place: Place, spans: readonly FinishedSpan[]): void {
    const exporter = this.#of(rules, place)
    for (const span of spans) exporter.add(span)
  }

  /** Sends what waits; for the end of the process. */
  async flush(): Promise<void> {
    await Promise.all([...this.#all].map((exporter) => exporter.deref()?.flush()))
  }

  #of(rules: TracingRules, place: Place): SpanExporter {
    let exporters = this.#byRules.get(rules)
    if (exporters === undefined) {
      exporters = new Map()
      this.#byRules.set(rules, exporters)
    }
    let exporter = exporters.get(place.gateway)
    if (exporter === undefined) {
      const { version, resolve, onSpans } = this.#options
      exporter = new SpanExporter({
        rules,
        version,
        onSpans,
        resource: describe(place, version),
        resolve: () => resolve(rules, place),
      })
      exporters.set(place.gateway, exporter)
      for (const known of this.#all) if (known.deref() === undefined) this.#all.delete(known)
      this.#all.add(new WeakRef(exporter))
    }
    return exporter
  }
}

/** What every proxy says of itself; a resource of the policy takes the place of one of the same name. */
function describe({ gateway }: TracedPlace, version: string): Attribute[] {
  const slash = gateway.indexOf('/')
  return [
    ['service.name', gateway.slice(slash + 1)],
    ['service.namespace', gateway.slice(0, slash)],
    ['service.version', version],
    ['service.instance.id', process.env.POD_NAME ?? `${hostname()}-${process.pid}`],
    ['host.name', hostname()],
  ]
}
