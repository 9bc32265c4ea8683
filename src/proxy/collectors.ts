/** How spans get from a policy to the collector that it names. */
import type { DirectTarget } from '../model/resources.ts'
import type { ListenerPlacement } from './config/placement.ts'
import { nameTarget } from './config/rules.ts'
import type { GatewayRuntime } from './request/runtime.ts'
import { resolveDestination } from './resolve.ts'
import { SpanExporters, type TracedPlace } from './telemetry/otlp/exporters.ts'
import type { Telemetry } from './telemetry/types.ts'

export interface CollectorPlace extends TracedPlace {
  readonly listener: ListenerPlacement
}

const places = new WeakMap<ListenerPlacement, CollectorPlace>()

export function placeOf(listener: ListenerPlacement): CollectorPlace {
  let place = places.get(listener)
  if (place === undefined) {
    place = { gateway: listener.place.gateway, listener }
    places.set(listener, place)
  }
  return place
}

/** A collector is a backend like any other: endpoints, TLS and its other policies are the same. */
export function createExporters(
  runtime: GatewayRuntime,
  telemetry: Telemetry,
  version = 'unknown',
): SpanExporters<CollectorPlace> {
  return new SpanExporters({
    version,
    onSpans: (exported, dropped) => telemetry.onSpans(exported, dropped),
    resolve: async (rules, { listener }) => {
      const named = nameTarget(rules.target as DirectTarget)
      const nobody = { authority: '', scheme: 'http' as const }
      const { address, authority } = await resolveDestination(runtime, listener, named, nobody)
      return { address, authority }
    },
  })
}
