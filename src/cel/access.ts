/** Fields, indices and presence. Own properties only; a field of null is missing, not a wrong type. */
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

/** The step that reads one field, or one key that is a literal text. */
export function fieldStep(of: Step, name: string): Step {
  const missing = new CelError('missing', `there is no ${JSON.stringify(name)}`)
  // What every object inherits must be asked for with care; all other names can be read straight.
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
 * `variable.field`, with a variable that reads as null where it is not set, in one step. Most of what
 * expressions read has this form; `otherwise` is the same in steps that take any value.
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

/** `variable.field["name"]` of views, such as headers of a request, likewise. */
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

/** `container[key]` for any key. */
export function indexOf(container: CelValue, key: CelValue): CelResult {
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

/** An index of a list; whole doubles are taken, as JSON has no ints. */
export function toPosition(key: CelValue): number | undefined {
  if (typeof key === 'bigint') return Number(key)
  if (typeof key === 'number') return Number.isInteger(key) ? key : undefined
  return key instanceof CelUint ? Number(key.value) : undefined
}

/** `has(of.name)`: false for a field of null, an error where `of` cannot be had. */
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
