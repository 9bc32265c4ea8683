/** Lines of a running gateway about objects that an edit breaks or repairs, as their conditions change. */

import type { FoldChange } from '../../../control/actors/fold.ts'
import type { ObjectState } from '../../../control/desired/object-state.ts'
import { specOf } from '../../../control/desired/specs.ts'
import { commandLine } from '../../../control/plane/api-binding.ts'
import { defaultClassName } from '../../../ground/model/api-names.ts'
import {
  type ObjectKey,
  objectKey,
  objectText,
  parseObjectKey,
} from '../../../ground/model/names.ts'
import { type PlacedCondition, placedConditions } from '../../../ground/model/placed-conditions.ts'
import { isRefusal } from '../../../past/explain/health.ts'
import type { Fold } from '../../../past/replay/index.ts'
import { isUnasked } from '../recording/unasked-proxies.ts'
import type { OperationalLog } from '../shared/operational-log.ts'

/** Maximum number of lines about one change; the others are counted. */
const maxLines = 5

export class ConditionReports {
  readonly #log: Pick<OperationalLog, 'write'>
  readonly #paths: readonly string[]
  #fold: Fold | undefined
  /** The problem of each object that has one. */
  readonly #problems = new Map<ObjectKey, string>()

  /** @param paths the files and folders with manifests */
  constructor(log: Pick<OperationalLog, 'write'>, paths: readonly string[]) {
    this.#log = log
    this.#paths = paths
  }

  /** Reports the problems of the first state, and from now on every change. */
  begin(fold: Fold): void {
    this.#fold = fold
    const missing = missingText(fold, this.#paths)
    if (missing !== undefined) this.#log.write('warn', missing)
    this.#report(fold.statuses().map(([ref, status]) => [objectKey(ref), status]))
  }

  decided({ statuses, dropped }: Pick<FoldChange, 'statuses' | 'dropped'>): void {
    for (const ref of dropped) this.#problems.delete(objectKey(ref))
    if (this.#fold === undefined) return
    this.#report(statuses.map(({ ref, status }) => [objectKey(ref), status]))
  }

  #report(changed: readonly (readonly [ObjectKey, unknown])[]): void {
    const broken = new Map<string, ObjectKey[]>()
    const repaired: ObjectKey[] = []
    for (const [key, status] of changed) {
      const problem = this.#isRefused(key) ? undefined : problemOf(status)
      const before = this.#problems.get(key)
      if (problem === before) continue
      if (problem === undefined) {
        this.#problems.delete(key)
        if (!this.#isRefused(key)) repaired.push(key)
      } else {
        this.#problems.set(key, problem)
        broken.set(problem, [...(broken.get(problem) ?? []), key])
      }
    }
    const lines = [...broken].map(([problem, keys]) => `${objectsText(keys)}: ${problem}`)
    for (const line of lines.slice(0, maxLines)) this.#log.write('warn', line)
    const others = [...broken.values()].slice(maxLines).flat().length
    if (others > 0)
      this.#log.write('warn', `${others} more objects have problems; see sluice status`)
    if (repaired.length > 0) {
      const be = repaired.length === 1 ? 'is' : 'are'
      this.#log.write('info', `${objectsText(repaired)} ${be} in order again`)
    }
  }

  /** The source of an invalid object reports it with its file and line. */
  #isRefused(key: ObjectKey): boolean {
    return this.#fold?.graph.object(key)?.refused !== undefined
  }
}

/** The GatewayClass exists without a manifest. */
const builtIn = objectKey({ kind: 'GatewayClass', namespace: '', name: defaultClassName })

/** Says that the manifests have nothing to serve, since a path may be mistyped. */
function missingText(fold: Fold, paths: readonly string[]): string | undefined {
  const written = [...fold.graph.objects()].filter(
    ({ ref }) => objectKey(ref) !== builtIn && ref.namespace !== commandLine.namespace,
  )
  const [gateway] = written.filter(({ ref }) => ref.kind === 'Gateway')
  if (gateway !== undefined) return foreignClassText(fold, gateway)
  const what = written.length === 0 ? 'object' : 'Gateway'
  return `no ${what} was found in ${paths.join(', ')}: no port is open. Objects that are added there apply at once.`
}

/** Says that no Gateway is of a class of this controller, whose Gateways alone have statuses. */
function foreignClassText(fold: Fold, { ref, object }: ObjectState): string | undefined {
  if (object === undefined || fold.statuses().some(([{ kind }]) => kind === 'Gateway'))
    return undefined
  const { gatewayClassName } = specOf<'Gateway'>(object)
  return `${objectText(ref)}: gatewayClassName ${gatewayClassName} is no class of this gateway: no port is open. The class that needs no manifest is ${defaultClassName}.`
}

/** `HTTPRoute shop/cart`, or how many more there are. */
function objectsText(keys: readonly ObjectKey[]): string {
  const [first, second] = keys
  if (first === undefined) return ''
  const text = objectText(parseObjectKey(first))
  return second === undefined ? text : `${text} and ${keys.length - 1} more`
}

/** The first problem of a status; undefined if it has none. `Programmed` often only repeats another one. */
function problemOf(status: unknown): string | undefined {
  const bad = placedConditions(status).filter(
    ({ condition }) => isRefusal(condition) && !isUnasked(condition),
  )
  const found = bad.find(({ condition }) => condition.type !== 'Programmed') ?? bad[0]
  return found === undefined ? undefined : problemText(found)
}

function problemText({ place, condition }: PlacedCondition): string {
  const { type, status, reason, message } = condition
  const at = place.startsWith('listener ') ? `${place}: ` : ''
  return `${at}${type} is ${status}: ${message === '' ? reason : message}`
}
