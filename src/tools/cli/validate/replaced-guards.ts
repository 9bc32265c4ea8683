/** Finds providers of models whose own settings replace guards of their backend. */
import type { GatewayBackendSpec } from '../../../control/api/gateway-backend.ts'
import { inlinePlaces } from '../../../control/desired/derive/backend.ts'
import type { SourceProblem } from '../../../control/watch/source-problem.ts'
import { objectKey } from '../../../ground/model/names.ts'
import type { Fold } from '../../../past/replay/index.ts'
import type { FieldPlaces } from '../recording/field-places.ts'
import type { Recording } from '../recording/recording.ts'
import { writtenObjects } from '../recording/written-objects.ts'

const sides = ['request', 'response'] as const

type WrittenGuards = Readonly<Partial<Record<(typeof sides)[number], readonly unknown[]>>>

const guardsOf = (policies: GatewayBackendSpec['policies']): WrittenGuards =>
  (policies as { ai?: { promptGuard?: WrittenGuards } } | undefined)?.ai?.promptGuard ?? {}

/**
 * One warning for each provider with `policies.ai` that leaves out guards which `policies.ai` of its backend
 * has. The most specific `ai` applies as a whole, so that requests of the provider pass unguarded.
 */
export function replacedGuards(
  recording: Pick<Recording, 'events'>,
  fold: Fold,
  places: FieldPlaces,
): SourceProblem[] {
  return writtenObjects(recording).flatMap((written) => {
    const { kind, namespace, name } = written
    if (kind !== 'GatewayBackend') return []
    const found = fold.graph.object(objectKey({ kind, namespace, name }))?.object
    if (found === undefined) return []
    return warningsOf(found.spec as GatewayBackendSpec).map((warning): SourceProblem => {
      const place = places.find(written, warning.path)
      return {
        severity: 'warning',
        reason: 'replaced',
        ...place,
        kind,
        namespace,
        name,
        ...warning,
      }
    })
  })
}

function warningsOf(spec: GatewayBackendSpec) {
  const guards = guardsOf(spec.policies)
  return inlinePlaces(spec).flatMap(({ path, policies }) => {
    if (policies?.ai === undefined) return []
    const own = guardsOf(policies)
    const missing = sides.filter((side) => guards[side]?.length && !own[side]?.length)
    if (missing.length === 0) return []
    const what = missing.map((side) => `promptGuard.${side}`).join(' and ')
    const message = `replaces spec.policies.ai for this provider, including its ${what}; repeat the guards here`
    return [{ path: `${path}.ai`, message }]
  })
}
