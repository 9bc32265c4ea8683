/** Macros that run an expression once per item: `all`, `exists`, `map`, `filter` and their like. */
import { type CelError, isCelError, noOverload } from './error.ts'
import { type Frame, type Step, spend } from './frame.ts'
import { worse } from './logic.ts'
import {
  type CelKey,
  type CelResult,
  type CelValue,
  isList,
  isMap,
  mapGet,
  mapKeys,
  typeName,
} from './value.ts'

export interface Loop {
  readonly range: Step
  /** Where the item is kept. */
  readonly slot: number
  readonly body: Step
  /** What one turn costs. */
  readonly steps: number
}

/** Items of a list or keys of a map. */
function itemsOf(value: CelResult, macro: string): readonly CelValue[] | CelError {
  if (isCelError(value)) return value
  if (isList(value)) return value
  return isMap(value) ? mapKeys(value) : noOverload(macro, typeName(value))
}

function turn({ slot, body, steps }: Loop, item: CelValue, frame: Frame): CelResult {
  const cost = spend(frame, steps)
  if (cost !== undefined) return cost
  frame.locals[slot] = item
  return body(frame)
}

/** A turn of which a bool is wanted. */
function decide(loop: Loop, item: CelValue, frame: Frame, macro: string): boolean | CelError {
  const value = turn(loop, item, frame)
  if (typeof value === 'boolean' || isCelError(value)) return value
  return noOverload(macro, typeName(value))
}

/** `all` and `exists`: errors count only when no item decides. */
export function quantifierStep(macro: 'all' | 'exists', loop: Loop): Step {
  const decisive = macro === 'exists'
  return (frame) => {
    const items = itemsOf(loop.range(frame), macro)
    if (isCelError(items)) return items
    let error: CelError | undefined
    for (const item of items) {
      const value = decide(loop, item, frame, macro)
      if (value === decisive) return value
      if (isCelError(value)) error = worse(error, value) as CelError
      if (frame.budget < 0) break
    }
    return error ?? !decisive
  }
}

export function existsOneStep(loop: Loop): Step {
  return (frame) => {
    const items = itemsOf(loop.range(frame), 'exists_one')
    if (isCelError(items)) return items
    let count = 0
    for (const item of items) {
      const value = decide(loop, item, frame, 'exists_one')
      if (isCelError(value)) return value
      if (value) count++
    }
    return count === 1
  }
}

export function filterStep(loop: Loop): Step {
  return (frame) => {
    const items = itemsOf(loop.range(frame), 'filter')
    if (isCelError(items)) return items
    const kept: CelValue[] = []
    for (const item of items) {
      const value = decide(loop, item, frame, 'filter')
      if (isCelError(value)) return value
      if (value) kept.push(item)
    }
    return kept
  }
}

/** `map` with or without a condition. */
export function mapStep(loop: Loop, transform: Step | undefined): Step {
  return (frame) => {
    const items = itemsOf(loop.range(frame), 'map')
    if (isCelError(items)) return items
    const made: CelValue[] = []
    for (const item of items) {
      const value = mapped(loop, transform, item, frame)
      if (value === undefined) continue
      if (isCelError(value)) return value
      made.push(value)
    }
    return made
  }
}

function mapped(
  loop: Loop,
  transform: Step | undefined,
  item: CelValue,
  frame: Frame,
): CelResult | undefined {
  if (transform === undefined) return turn(loop, item, frame)
  const condition = decide(loop, item, frame, 'map')
  if (isCelError(condition)) return condition
  return condition ? transform(frame) : undefined
}

/** `map.mapValues(value, expression)`: the same keys with other values. */
export function mapValuesStep(loop: Loop): Step {
  return (frame) => {
    const map = loop.range(frame)
    if (isCelError(map)) return map
    if (!isMap(map)) return noOverload('mapValues', typeName(map))
    const made = new Map<CelKey, CelValue>()
    for (const key of mapKeys(map)) {
      const old = mapGet(map, key)
      if (old === undefined) continue
      const value = isCelError(old) ? old : turn(loop, old, frame)
      if (isCelError(value)) return value
      made.set(key, value)
    }
    return made
  }
}

/** `map.filterKeys(key, condition)`: the entries whose keys pass. */
export function filterKeysStep(loop: Loop): Step {
  return (frame) => {
    const map = loop.range(frame)
    if (isCelError(map)) return map
    if (!isMap(map)) return noOverload('filterKeys', typeName(map))
    const kept = new Map<CelKey, CelValue>()
    for (const key of mapKeys(map)) {
      const isKept = decide(loop, key, frame, 'filterKeys')
      if (isCelError(isKept)) return isKept
      const value = isKept ? mapGet(map, key) : undefined
      if (isCelError(value)) return value
      if (value !== undefined) kept.set(key, value)
    }
    return kept
  }
}

/** `value.with(name, expression)` and `cel.bind(name, value, expression)`. */
export function bindStep({ range, slot, body }: Loop): Step {
  return (frame) => {
    const value = range(frame)
    if (isCelError(value)) return value
    frame.locals[slot] = value
    return body(frame)
  }
}
