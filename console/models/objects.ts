/** The list of all objects, filtered by kind, text and health. */

import { compareText, type ObjectKey } from '../../src/ground/model/names.ts'
import { checkStatus, healthOf, type ObjectHealth, worstOf } from '../../src/past/explain/health.ts'
import type { Moment } from '../log/loaded-log.ts'

interface ObjectRow {
  readonly object: ObjectKey
  readonly generation: number
  /** Undefined if the object has no conditions of this controller. */
  readonly health: ObjectHealth | undefined
  /** Conditions that are not as they should be, such as `Accepted=False`. */
  readonly summary: string
}

interface ObjectsParams {
  readonly text?: string
  readonly kind?: string
  readonly health?: string
}

const kindOf = (object: ObjectKey) => object.slice(0, object.indexOf('/'))

export function objectsModel(moment: Moment, params: ObjectsParams) {
  const { text = '', kind = '', health = '' } = params
  const wanted = text.toLowerCase()
  const rows: ObjectRow[] = []
  const kinds = new Map<string, number>()
  let total = 0
  for (const [object, { generation }] of moment.objects.entries()) {
    const own = kindOf(object)
    total++
    kinds.set(own, (kinds.get(own) ?? 0) + 1)
    if (kind !== '' && own !== kind) continue
    if (wanted !== '' && !object.toLowerCase().includes(wanted)) continue
    const row = { object, generation, ...healthOfObject(moment, object) }
    if (health === 'bad' && (row.health === undefined || row.health === 'ok')) continue
    rows.push(row)
  }
  rows.sort((a, b) => compareText(a.object, b.object))
  return { rows, total, kinds: [...kinds].sort(([a], [b]) => compareText(a, b)) }
}

/** The worst condition of an object, and every condition that is not as it should be. */
export function healthOfObject(
  { objects, statuses, log }: Moment,
  object: ObjectKey,
): Pick<ObjectRow, 'health' | 'summary'> {
  const version = objects.get(object)
  const { placed, bad } = checkStatus(statuses.get(object))
  const texts = bad.map(({ condition: { type, status, reason } }) => `${type}=${status} ${reason}`)
  const isRefused = version?.refused !== undefined
  if (isRefused) texts.unshift(`generation ${log.refusal(version).generation} refused`)
  const summary = [...new Set(texts)].join(', ')
  if (isRefused) return { health: 'problem', summary }
  if (placed.length === 0) return { health: undefined, summary }
  return { health: worstOf(bad.map(({ condition }) => healthOf(condition))), summary }
}
