/** Access to fields and items, and `has`. Only own properties are fields; a field of null is missing. */
import { CelError, isCelError, noOverload } from './error.ts'
import type { Step } from './frame.ts'
import {
  type CelRecord,
  type CelResult,
  CelUint,
  type CelValue,
  CelView,
  isList,
  isMap,
  mapGet,
  toKey,
  typeName,
} from './value.ts'

/** Returns the step that reads the field `name`, which is known when the expression is compiled. */
export function fieldStep(of: Step, name: string): Step {
  const missing = new CelError('missing', `there is no ${JSON.stringify(name)}`)
  // Names that every object inherits need a check for own properties; all other names are read directly.
  const isInherited = name in Object.prototype
  return (frame) => {
    const value = of(frame)
    if (typeof value === 'object' && value !== null) {
      if (value instanceof CelView) {
        const found = value.field(name)
        return found === undefined ? missing : found
      }
      if (!isInherited && value.constructor === Object) {
        const found = (value as CelRecord)[name]
        return found === undefined ? missing : found
      }
    }
    return fieldOf(value, name, missing)
  }
}

/**
 * Reads `variable.field`, the most common form of access, in one step. The variable must read as null if it
 * is not set. `otherwise` is the general step, which handles values of every type.
 */
export function variableFieldStep(variable: string, name: string, otherwise: Step): Step {
  const missing = new CelError('missing', `there is no ${JSON.stringify(name)}`)
  const isInherited = name in Object.prototype
  return (frame) => {
    const value = frame.activation.lookup(variable)
    if (typeof value !== 'object' || value === null) return otherwise(frame)
    let found: CelResult | undefined
    if (value instanceof CelView) found = value.field(name)
    else if (!isInherited && value.constructor === Object) found = (value as CelRecord)[name]
    else return otherwise(frame)
    return found === undefined ? missing : found
  }
}

/** Reads `variable.field["name"]` of views in one step, as for the headers of a request. */
export function viewFieldStep(
  variable: string,
  field: string,
  name: string,
  otherwise: Step,
): Step {
  const missing = new CelError('missing', `there is no ${JSON.stringify(name)}`)
  return (frame) => {
    const value = frame.activation.lookup(variable)
    const view = value instanceof CelView ? value.field(field) : undefined
    if (!(view instanceof CelView)) return otherwise(frame)
    const found = view.field(name)
    return found === undefined ? missing : found
  }
}

function fieldOf(value: CelResult, name: string, missing: CelError): CelResult {
  if (isCelError(value)) return value
  if (value === null) return missing
  if (!isMap(value)) return noOverload(`.${name}`, typeName(value))
  const found = mapGet(value, name)
  return found === undefined ? missing : found
}

const noItem = new CelError('missing', 'there is no such item')
const noKey = new CelError('missing', 'there is no such key')

/** Reads `container[key]` for any key. */
export function readIndex(container: CelValue, key: CelValue): CelResult {
  if (isList(container)) {
    const position = toPosition(key)
    if (position === undefined) return noOverload('[]', 'list', typeName(key))
    const item = container[position]
    return item === undefined ? noItem : item
  }
  if (container === null) return noKey
  if (!isMap(container)) return noOverload('[]', typeName(container), typeName(key))
  const found = toKey(key)
  if (found === undefined) {
    return typeof key === 'number' ? noKey : noOverload('[]', 'map', typeName(key))
  }
  const value = mapGet(container, found)
  return value === undefined ? noKey : value
}

/** Converts an index of a list to a number. Whole doubles are accepted, because JSON has no ints. */
export function toPosition(key: CelValue): number | undefined {
  if (typeof key === 'bigint') return Number(key)
  if (typeof key === 'number') return Number.isInteger(key) ? key : undefined
  return key instanceof CelUint ? Number(key.value) : undefined
}

/** `has(of.name)`: false if `of` is null, an error if `of` is an error. */
export function hasStep(of: Step, name: string): Step {
  const isInherited = name in Object.prototype
  return (frame) => {
    const value = of(frame)
    if (typeof value === 'object' && value !== null) {
      if (value instanceof CelView) return value.hasField(name)
      if (!isInherited && value.constructor === Object) {
        return (value as CelRecord)[name] !== undefined
      }
    }
    return hasField(value, name)
  }
}

function hasField(value: CelResult, name: string): CelResult {
  if (isCelError(value)) return value
  if (value === null) return false
  return isMap(value) ? mapGet(value, name) !== undefined : noOverload('has', typeName(value))
}
