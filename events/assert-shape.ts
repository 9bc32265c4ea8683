/** Checks values against shapes: the types of their fields. */

/** Thrown if an event has a shape that no version writes: the log was damaged or edited. */
export class DamagedEventError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'DamagedEventError'
  }
}

export type Fields = Readonly<Record<string, unknown>>

/** Checks a value at a path such as `event.data.name`. @throws DamagedEventError */
export type Check = (value: unknown, at: string) => void

/** The type of a field; `?` marks a field that may be missing. A list checks all of its items. */
export type FieldShape = 'string' | 'number' | 'boolean' | 'object' | Check | readonly [FieldShape]

/** Fields of an object. Those whose names end with `?` may be missing. Other fields are not checked. */
export type Shape = Readonly<Record<string, FieldShape>>

/** @throws DamagedEventError */
export function assertField(value: unknown, shape: FieldShape, at: string): void {
  if (typeof shape === 'function') {
    shape(value, at)
  } else if (typeof shape === 'string') {
    const isType = typeof value === shape && value !== null && !Array.isArray(value)
    if (!isType) throw new DamagedEventError(`${at} is missing or no ${shape}`)
  } else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) assertField(item, shape[0], `${at}[${index}]`)
  } else throw new DamagedEventError(`${at} is missing or no list`)
}

/** A field of a shape, whose name has no mark. */
interface NamedField {
  readonly name: string
  readonly isOptional: boolean
  readonly type: FieldShape
}

/** The fields of each shape, since every event that is read is checked. */
const fieldsByShape = new WeakMap<Shape, readonly NamedField[]>()

function fieldsOf(shape: Shape): readonly NamedField[] {
  let fields = fieldsByShape.get(shape)
  if (fields === undefined) {
    fields = Object.entries(shape).map(([marked, type]) => {
      const isOptional = marked.endsWith('?')
      return { name: isOptional ? marked.slice(0, -1) : marked, isOptional, type }
    })
    fieldsByShape.set(shape, fields)
  }
  return fields
}

/** @throws DamagedEventError that names the field */
export function assertShape(value: unknown, shape: Shape, at: string): void {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new DamagedEventError(`${at} is no object`)
  }
  for (const { name, isOptional, type } of fieldsOf(shape)) {
    const found = Object.hasOwn(value, name) ? (value as Fields)[name] : undefined
    // Most fields are texts. No path is written for those that are right.
    if (type === 'string' && typeof found === type) continue
    if (!isOptional || found !== undefined) assertField(found, type, `${at}.${name}`)
  }
}
