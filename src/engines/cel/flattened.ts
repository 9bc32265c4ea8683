import { isCelError } from './error.ts'
import {
  type CelMapValue,
  type CelResult,
  type CelValue,
  CelView,
  isMap,
  mapGet,
  mapKeys,
  maxValueDepth,
} from './value.ts'

/**
 * The result of `flatten` and `flattenRecursive`. In expressions it is the map itself. A log or a trace
 * writes one attribute per entry instead of one for the whole map.
 */
export class FlattenedMap extends CelView {
  readonly map: CelMapValue
  readonly isRecursive: boolean

  constructor(map: CelMapValue, isRecursive: boolean) {
    super()
    this.map = map
    this.isRecursive = isRecursive
  }

  override field(name: string): CelResult | undefined {
    return mapGet(this.map, name)
  }

  override fieldNames(): readonly string[] {
    return mapKeys(this.map).map(String)
  }

  /**
   * Returns entries named `prefix.key`, and those of nested maps if recursive. Leaves out errors and nulls,
   * and all entries after the first 1000.
   */
  attributes(prefix: string): [string, CelValue][] {
    const found: [string, CelValue][] = []
    collect(this.map, prefix, this.isRecursive ? maxValueDepth : 0, found)
    return found
  }
}

const maxAttributes = 1000

/** @param levels how many levels of nested maps to flatten */
function collect(
  map: CelMapValue,
  prefix: string,
  levels: number,
  found: [string, CelValue][],
): void {
  for (const key of mapKeys(map)) {
    if (found.length >= maxAttributes) return
    const value = mapGet(map, key)
    if (value === undefined || value === null || isCelError(value)) continue
    const name = prefix === '' ? String(key) : `${prefix}.${key}`
    if (levels > 0 && isMap(value)) collect(value, name, levels - 1, found)
    else found.push([name, value])
  }
}
