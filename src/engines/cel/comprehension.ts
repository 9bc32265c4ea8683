/** Macros that evaluate an expression once per item: `all`, `exists`, `map`, `filter` and similar ones. */
import { type CelError, isCelError, noOverload } from './error.ts'
import { type EvaluationFrame, type Step, spend } from './frame.ts'
import { moreSevere } from './logic.ts'
import {
  type CelKey,
  CelMap,
  type CelMapValue,
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
  /** Index of the item in `Frame.locals`. */
  readonly slot: number
  readonly body: Step
  /** Steps that one iteration costs. */
  readonly steps: number
}

/** Returns the items of a list or the keys of a map. */
function itemsOf(value: CelResult, macro: string): readonly CelValue[] | CelError {
  if (isCelError(value)) return value
  if (isList(value)) return value
  return isMap(value) ? keysOf(value) : noOverload(macro, typeName(value))
}

/** A key of a map as a value. */
const keyOf = (map: CelMapValue, key: CelKey): CelValue =>
  map instanceof CelMap ? map.keyValue(key) : key

const keysOf = (map: CelMapValue): readonly CelValue[] =>
  map instanceof CelMap ? mapKeys(map).map((key) => map.keyValue(key)) : mapKeys(map)

function iterate({ slot, body, steps }: Loop, item: CelValue, frame: EvaluationFrame): CelResult {
  const cost = spend(frame, steps)
  if (cost !== undefined) return cost
  frame.locals[slot] = item
  return body(frame)
}

/** Runs an iteration whose result must be a bool. */
function decide(
  loop: Loop,
  item: CelValue,
  frame: EvaluationFrame,
  macro: string,
): boolean | CelError {
  const value = iterate(loop, item, frame)
  if (typeof value === 'boolean' || isCelError(value)) return value
  return noOverload(macro, typeName(value))
}

/** `all` and `exists`. An error is returned only if no item decides the result. */
export function quantifierStep(macro: 'all' | 'exists', loop: Loop): Step {
  const decisive = macro === 'exists'
  return (frame) => {
    const items = itemsOf(loop.range(frame), macro)
    if (isCelError(items)) return items
    let error: CelError | undefined
    for (const item of items) {
      const value = decide(loop, item, frame, macro)
      if (value === decisive) return value
      if (isCelError(value)) error = moreSevere(error, value) as CelError
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

/** `map` and `filter`. If `transform` is set, it maps the items for which the body is true. */
function collectStep(macro: string, loop: Loop, transform: Step | undefined): Step {
  return (frame) => {
    const items = itemsOf(loop.range(frame), macro)
    if (isCelError(items)) return items
    const results: CelValue[] = []
    for (const item of items) {
      const result = collected(macro, loop, transform, item, frame)
      if (result === undefined) continue
      if (isCelError(result)) return result
      results.push(result)
    }
    return results
  }
}

function collected(
  macro: string,
  loop: Loop,
  transform: Step | undefined,
  item: CelValue,
  frame: EvaluationFrame,
): CelResult | undefined {
  if (transform === undefined) return iterate(loop, item, frame)
  const accepted = decide(loop, item, frame, macro)
  if (isCelError(accepted)) return accepted
  return accepted ? transform(frame) : undefined
}

export const filterStep = (loop: Loop): Step =>
  collectStep('filter', loop, (frame) => frame.locals[loop.slot] ?? null)

/** `map`. If `transform` is set, the body of the loop is a condition. */
export const mapStep = (loop: Loop, transform: Step | undefined): Step =>
  collectStep('map', loop, transform)

type SelectValue = (map: CelMapValue, key: CelKey, frame: EvaluationFrame) => CelResult | undefined

/** Creates a map of the keys for which `select` returns a value. */
function mapOfStep(macro: string, range: Step, select: SelectValue): Step {
  return (frame) => {
    const map = range(frame)
    if (isCelError(map)) return map
    if (!isMap(map)) return noOverload(macro, typeName(map))
    const selected = new CelMap()
    for (const key of mapKeys(map)) {
      const value = select(map, key, frame)
      if (isCelError(value)) return value
      if (value === undefined) continue
      selected.put(keyOf(map, key), key, value)
    }
    return selected
  }
}

/** `map.mapValues(value, expression)` keeps the keys and replaces the values. */
export function mapValuesStep(loop: Loop): Step {
  return mapOfStep('mapValues', loop.range, (map, key, frame) => {
    const old = mapGet(map, key)
    return old === undefined || isCelError(old) ? old : iterate(loop, old, frame)
  })
}

/** `map.filterKeys(key, condition)` keeps the entries for whose keys the condition is true. */
export function filterKeysStep(loop: Loop): Step {
  return mapOfStep('filterKeys', loop.range, (map, key, frame) => {
    const isKept = decide(loop, keyOf(map, key), frame, 'filterKeys')
    if (isCelError(isKept)) return isKept
    return isKept ? mapGet(map, key) : undefined
  })
}

/** Evaluates `value.with(name, expression)` and `cel.bind(name, value, expression)`. */
export function bindStep({ range, slot, body }: Loop): Step {
  return (frame) => {
    const value = range(frame)
    if (isCelError(value)) return value
    frame.locals[slot] = value
    return body(frame)
  }
}
