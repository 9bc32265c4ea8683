/** The list of all objects, filtered by kind, text and health. */
import { placedConditions } from '../../../src/explain/conditions.ts'
import { type Health, healthOf, worstOf } from '../../../src/explain/health.ts'
import { compareText, type ObjectKey, objectKey } from '../../../src/model/names.ts'
import type { Fold } from '../../../src/replay/index.ts'
import type { Moment } from '../../worker/loaded-log.ts'

export interface ObjectRow {
  readonly object: ObjectKey
  readonly generation: number
  /** Undefined if the object has no conditions of this controller. */
  readonly health: Health | undefined
  /** Conditions that are not as they should be, such as `Accepted=False`. */
  readonly summary: string
}

interface ObjectsParams {
  readonly text?: string
  readonly kind?: string
  readonly health?: string
  /** Maximum number of rows. */
  readonly limit?: number
}

export function objectsModel({ fold }: Moment, params: ObjectsParams) {
  const { text = '', kind = '', health = '', limit = 100_000 } = params
  const wanted = text.toLowerCase()
  const rows: ObjectRow[] = []
  const kinds = new Map<string, number>()
  let total = 0
  for (const state of fold.graph.objects()) {
    const object = objectKey(state.ref)
    total++
    kinds.set(state.ref.kind, (kinds.get(state.ref.kind) ?? 0) + 1)
    if (kind !== '' && state.ref.kind !== kind) continue
    if (wanted !== '' && !object.toLowerCase().includes(wanted)) continue
    const row = { object, generation: state.generation, ...healthOfObject(fold, object) }
    if (health === 'bad' && (row.health === undefined || row.health === 'ok')) continue
    rows.push(row)
  }
  rows.sort((a, b) => compareText(a.object, b.object))
  return {
    rows: rows.slice(0, limit),
    matching: rows.length,
    total,
    kinds: [...kinds].sort(([a], [b]) => compareText(a, b)),
  }
}

/** The worst condition of an object, and every condition that is not as it should be. */
export function healthOfObject(
  fold: Fold,
  object: ObjectKey,
): Pick<ObjectRow, 'health' | 'summary'> {
  const state = fold.graph.object(object)
  const status = state && fold.statusOf(state.ref)
  const placed = placedConditions(status)
  const bad = placed.filter(({ condition }) => healthOf(condition) !== 'ok')
  const refused =
    state?.refused === undefined ? [] : [`generation ${state.refused.generation} refused`]
  const texts = bad.map(
    ({ condition }) => `${condition.type}=${condition.status} ${condition.reason}`,
  )
  const summary = [...new Set([...refused, ...texts])].join(', ')
  if (refused.length > 0) return { health: 'problem', summary }
  if (placed.length === 0) return { health: undefined, summary }
  return { health: worstOf(bad.map(({ condition }) => healthOf(condition))), summary }
}
