/**
 * Judges an object before the API server stores it: whether it is valid, whether its references resolve, and whether
 * `changeProtection` would hold the change. One object is judged at a time, on a copy of the state.
 */
import type { ResourceEvent, ResourceName } from '../../../../events/index.ts'
import { ownGroup } from '../../../ground/model/api-names.ts'
import { objectKey, objectText } from '../../../ground/model/names.ts'
import { placedConditions } from '../../../ground/model/placed-conditions.ts'
import type { EventJudgement, Judge } from '../../../past/what-if/judge.ts'
import type { Fold } from '../../actors/fold.ts'
import { deletedEvent, parseVersion } from '../../watch/difference.ts'
import { clusterDifferences } from '../../watch/kubernetes/differences.ts'
import { watchedKinds } from '../../watch/kubernetes/kinds.ts'
import { observeObject } from '../../watch/kubernetes/observe.ts'
import type { KubernetesSource } from '../../watch/kubernetes/source.ts'
import type { StartedPlane } from '../parts.ts'
import type { AdmissionAnswer, AdmissionRequest } from './review.ts'

interface AdmissionJudgeOptions {
  readonly plane: Pick<StartedPlane, 'fold' | 'index' | 'sourceOptions'>
  /** Knows which objects are read: in a cluster, selectors may exclude a namespace. */
  readonly source: Pick<KubernetesSource, 'isRelevant'>
  readonly judge: () => Promise<Judge>
  /** Called if a judgement fails, because the judge may be in no state to make another one. */
  readonly forget?: () => void
  /** If false, objects are admitted with a warning instead of refused. */
  readonly refuses: boolean
}

/** With this annotation, a change is admitted and then held, so that it can be approved. */
const admitAnnotation = 'sluice.dev/admit'

export class AdmissionJudge {
  readonly #options: AdmissionJudgeOptions
  #last: Promise<unknown> = Promise.resolve()

  constructor(options: AdmissionJudgeOptions) {
    this.#options = options
  }

  /** Waits for the requests before this one. @param signal aborted if the request has timed out */
  answer(request: AdmissionRequest, signal: AbortSignal): Promise<AdmissionAnswer> {
    const answered = this.#last.then(() =>
      signal.aborted ? { warnings: [] } : this.#judge(request),
    )
    this.#last = answered.catch(() => this.#options.forget?.())
    return answered
  }

  async #judge(request: AdmissionRequest): Promise<AdmissionAnswer> {
    const { plane, judge } = this.#options
    // The first listing is not a change.
    const event = plane.fold.changes.isListed ? this.#eventOf(request) : undefined
    if (event === undefined) return { warnings: [] }
    const ref = event.data as ResourceName
    const next = await (await judge()).judgeNext(plane.fold, objectKey(ref), event)
    const problems = event.type === 'dev.sluice.resource.refused.v1' ? event.data.problems : []
    const invalid = problems.map(({ path, message }) => `${path}: ${message}`)
    const unmet = next.verdict.unmet.map(({ condition, message }) => `${condition}: ${message}`)
    // An object of another gateway may have fields that this one does not know.
    const isOwn = request.kind.group === ownGroup || plane.fold.statusOf(ref) !== undefined
    const refusesInvalid = invalid.length > 0 && next.hasHold && isOwn
    const { annotations = {} } = request.object.metadata
    const isMarked = annotations[admitAnnotation] === 'true'
    const isAdmitted = isMarked || request.isCluster || !this.#options.refuses
    if ((next.verdict.isHeld || refusesInvalid) && !isAdmitted) {
      const reasons = [...invalid, ...unmet].join('; ')
      const advice = `to apply it anyway, set the annotation ${admitAnnotation}: "true"; the change is then held until it is approved`
      return { refusal: `${reasons}; ${advice}`, warnings: [] }
    }
    return { warnings: [...invalid, ...unmet, ...conditionProblems(plane.fold, next, ref)] }
  }

  /** Returns the event that the log would get; undefined if it has the spec already, or if the object is not read. */
  #eventOf({ operation, kind, object }: AdmissionRequest): ResourceEvent | undefined {
    const { plane, source } = this.#options
    const watched = watchedKinds.find((one) => one.kind === kind.kind && one.group === kind.group)
    if (watched === undefined) return undefined
    const { namespace = '', name, labels = {} } = object.metadata
    if (!source.isRelevant({ kind: watched, namespace, name, labels })) return undefined
    const { keepSecret: _, ...options } = plane.sourceOptions
    const claim = observeObject(watched, kind.version, object, options)
    const context = {
      source: '/sluice/admission',
      time: new Date().toISOString(),
      epoch: plane.fold.epoch,
    }
    if (operation === 'DELETE') {
      const state = plane.fold.graph.object(objectKey(claim.name))
      if (state === undefined) return undefined
      const { ref, uid, resourceVersion, generation } = state
      return deletedEvent(
        { ...ref, uid, resourceVersion, generation, isRefused: false },
        'watch',
        context,
      )
    }
    // What changes no spec is not refused: annotations approve what is held, and controllers remove finalizers.
    const known = plane.index.get(claim.key)
    const spec = known && parseVersion(known.resourceVersion).spec
    if (known?.uid === claim.uid && spec === claim.content.version.spec) return undefined
    const change = { claims: [claim], gone: [], cause: 'relist' } as const
    return clusterDifferences(plane.index, change, context).at(-1)
  }
}

/** The conditions of the object that become false, or say that a part of it cannot be used. */
function conditionProblems(fold: Fold, { after }: EventJudgement, ref: ResourceName): string[] {
  const problemsIn = (state: Pick<Fold, 'statusOf'>) =>
    placedConditions(state.statusOf(ref)).flatMap(({ place, condition }) => {
      const { type, status, reason, message } = condition
      const isFalse = status === 'False' && (type === 'Accepted' || type === 'ResolvedRefs')
      const isProblem = isFalse || reason === 'PartiallyValid'
      const where = place === '' ? objectText(ref) : `${objectText(ref)}, ${place}`
      return isProblem ? [`${where}: ${type} is ${status} (${reason}): ${message}`] : []
    })
  const known = new Set(problemsIn(fold))
  return problemsIn(after).filter((problem) => !known.has(problem))
}
