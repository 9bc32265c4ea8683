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
 * What `flatten` and `flattenRecursive` give. To expressions it is the map; a log or a trace writes
 * one attribute per entry instead of one for all.
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

  /** Entries as `prefix.key`; those of maps within only when recursive. Errors and nulls are left out. */
  attributes(prefix: string): [string, CelValue][] {
    return entriesOf(this.map, prefix, this.isRecursive, 0)
  }
}

function entriesOf(
  map: CelMapValue,
  prefix: string,
  isRecursive: boolean,
  depth: number,
): [string, CelValue][] {
  return mapKeys(map).flatMap((key): [string, CelValue][] => {
    const value = mapGet(map, key)
    if (value === undefined || value === null || isCelError(value)) return []
    const name = prefix === '' ? String(key) : `${prefix}.${key}`
    return isRecursive && isMap(value) && depth < maxValueDepth
      ? entriesOf(value, name, isRecursive, depth + 1)
      : [[name, value]]
  })
}
