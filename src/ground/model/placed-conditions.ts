/** The conditions in the status of an object, and how two statuses differ in them. */
import type { Condition, DecidedCondition } from './conditions.ts'

/** A condition and its location in the status. */
export interface PlacedCondition {
  /** The location in words, such as `listener http`; empty if the condition is about the object itself. */
  readonly place: string
  /** The location as a path, such as `status.listeners[http]`. */
  readonly path: string
  readonly condition: Condition & Pick<DecidedCondition, 'own'>
}

type Json = Readonly<Record<string, unknown>>

const nestedLists: readonly (readonly [
  field: string,
  what: string,
  nameOf: (entry: Json) => string,
])[] = [
  ['listeners', 'listener', ({ name }) => String(name)],
  ['parents', 'parent', ({ parentRef }) => parentText(parentRef as ParentReference)],
  ['ancestors', 'ancestor', ({ ancestorRef }) => parentText(ancestorRef as ParentReference)],
]

interface ParentReference {
  readonly kind?: string
  readonly namespace?: string
  readonly name?: string
  readonly sectionName?: string
  readonly port?: number
}

/** Formats a reference to a parent. References to different parents give different texts. */
export function parentText({
  kind = '',
  namespace,
  name = '',
  sectionName,
  port,
}: ParentReference): string {
  const path = namespace === undefined ? name : `${namespace}/${name}`
  const section = sectionName === undefined ? '' : `#${sectionName}`
  return `${kind} ${path}${section}${port === undefined ? '' : `:${port}`}`.trim()
}

export function placedConditions(status: unknown): PlacedCondition[] {
  const { conditions, ...fields } = (status ?? {}) as Json
  const at = (place: string, path: string, list: unknown): PlacedCondition[] =>
    ((list ?? []) as Condition[]).map((condition) => ({ place, path, condition }))
  const nested = nestedLists.flatMap(([field, what, nameOf]) =>
    ((fields[field] ?? []) as Json[]).flatMap((entry) => {
      const name = nameOf(entry)
      return at(`${what} ${name}`, `status.${field}[${name}]`, entry.conditions)
    }),
  )
  return [...at('', 'status', conditions), ...nested]
}

/** A condition that has another status, reason or message; one of the sides may not have it. */
export interface ConditionDifference {
  readonly place: string
  readonly type: string
  readonly from: Condition | undefined
  readonly to: Condition | undefined
}

export function conditionDifferences(
  before: readonly PlacedCondition[],
  after: readonly PlacedCondition[],
): ConditionDifference[] {
  const [old, fresh] = [byPlaceAndType(before), byPlaceAndType(after)]
  return [...new Map([...old, ...fresh])].flatMap(
    ([
      key,
      {
        place,
        condition: { type },
      },
    ]) => {
      const [from, to] = [old.get(key)?.condition, fresh.get(key)?.condition]
      return isSame(from, to) ? [] : [{ place, type, from, to }]
    },
  )
}

const byPlaceAndType = (placed: readonly PlacedCondition[]) =>
  new Map(placed.map((one) => [`${one.place}\0${one.condition.type}`, one]))

const isSame = (a: Condition | undefined, b: Condition | undefined): boolean =>
  a?.status === b?.status && a?.reason === b?.reason && a?.message === b?.message
